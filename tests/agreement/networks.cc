#include "tests/agreement/networks.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <stdexcept>

#include "examples/models/cifar_cnn.h"
#include "examples/models/lstm_classifier.h"
#include "examples/models/mobilenet_v2.h"
#include "examples/models/resnet.h"
#include "examples/models/unet.h"
#include "examples/models/vit.h"

namespace parsimony::test {
namespace {

/// As after training: an exporter takes equal tensors, such as fresh normalisations, for one.
void scatter(torch::nn::Module& module) {
  const at::NoGradGuard no_grad;
  const auto around = [](at::Tensor tensor, double mean) {
    tensor.copy_(mean + 0.2 * (at::rand(tensor.sizes()) - 0.5));
  };
  for (const auto& parameter : module.named_parameters()) {
    const bool scale = parameter.key().ends_with("weight") && parameter.value().dim() == 1;
    around(parameter.value(), scale ? 1.0 : 0.0);
  }
  for (const auto& buffer : module.named_buffers()) {
    if (buffer.value().is_floating_point()) {
      around(buffer.value(), buffer.key().ends_with("var") ? 1.0 : 0.0);
    }
  }
}

template <typename Holder>
Network network(const std::string& name, const Shape& input, Holder model) {
  scatter(*model);
  const auto forward = [model](const std::vector<at::Tensor>& x) mutable {
    return model->forward(x.at(0));
  };
  return {name, input, model.ptr(), forward};
}

}  // namespace

Network make_network(const std::string& name) {
  using namespace examples;
  at::manual_seed(7);
  if (name == "cifar_cnn") {
    const CifarCnnOptions options{.width = 8, .hidden = 32, .image = 16};
    return network(name, {2, 3, 16, 16}, CifarCnn(options));
  }
  if (name == "resnet18") {
    ResNetOptions options = resnet18();
    options.width = 8;
    options.classes = 10;
    return network(name, {2, 3, 64, 64}, ResNet(options));
  }
  if (name == "mobilenet_v2") {
    const MobileNetV2Options options{.width = 0.25, .head = 48, .classes = 10};
    return network(name, {2, 3, 32, 32}, MobileNetV2(options));
  }
  if (name == "unet") {
    return network(name, {2, 3, 16, 16}, UNet(UNetOptions{.width = 8, .depth = 2}));
  }
  if (name == "vit") {
    const ViTOptions options{
        .image = 16, .patch = 4, .embedding = 48, .depth = 2, .heads = 3, .mlp = 96, .classes = 10};
    return network(name, {2, 3, 16, 16}, ViT(options));
  }
  if (name == "lstm") {
    const LstmClassifierOptions options{.features = 6, .hidden = 16};
    return network(name, {2, 5, 6}, LstmClassifier(options));
  }
  throw std::invalid_argument("no network " + name);
}

int64_t count_parameters(const torch::nn::Module& module) {
  int64_t count = 0;
  for (const at::Tensor& parameter : module.parameters()) count += parameter.numel();
  return count;
}

}  // namespace parsimony::test
