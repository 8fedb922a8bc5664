#include <algorithm>
#include <array>
#include <string_view>

#include "parsimony/base/errors.h"
#include "parsimony/cli/torch/jobs.h"
#include "parsimony/examples/models/cifar_cnn.h"
#include "parsimony/examples/models/gpt.h"
#include "parsimony/examples/models/llama.h"
#include "parsimony/examples/models/mobilenet_v2.h"
#include "parsimony/examples/models/resnet.h"
#include "parsimony/examples/models/vgg.h"
#include "parsimony/examples/models/vit.h"
#include "parsimony/training/net/trainable_model.h"

namespace parsimony::component {
namespace {

using training::Live;
using training::live;

/// Image size and number of classes; for language models the context length.
struct Task {
  int64_t channels = 0;
  int64_t image = 0;
  int64_t classes = 0;
  int64_t context = 0;
};

Live cnn(const Task& t) {
  return live(examples::CifarCnn(
      examples::CifarCnnOptions{.image = t.image, .classes = t.classes, .channels = t.channels}));
}

Live resnet(examples::ResNetOptions options, const Task& t) {
  options.classes = t.classes;
  options.channels = t.channels;
  options.small_images = t.image < 64;
  return live(examples::ResNet(options));
}

Live resnet18(const Task& t) { return resnet(examples::resnet18(), t); }
Live resnet20(const Task& t) { return resnet(examples::cifar_resnet(3), t); }
Live resnet56(const Task& t) { return resnet(examples::cifar_resnet(9), t); }

Live mobilenet_v2(const Task& t) {
  return live(examples::MobileNetV2(examples::MobileNetV2Options{
      .classes = t.classes, .channels = t.channels, .small_images = t.image < 64}));
}

Live vgg16_bn(const Task& t) {
  return live(examples::Vgg(examples::VggOptions{.classes = t.classes, .channels = t.channels}));
}

Live vit_tiny(const Task& t) {
  return live(examples::ViT(examples::ViTOptions{.image = t.image,
                                                 .patch = t.image < 64 ? 4 : 16,
                                                 .classes = t.classes,
                                                 .channels = t.channels}));
}

Live gpt_tiny(const Task& t) {
  return live(examples::Gpt(examples::GptOptions{.vocabulary = t.classes, .context = t.context}));
}

Live llama_tiny(const Task& t) {
  return live(examples::Llama(examples::LlamaOptions{.vocabulary = t.classes}));
}

constexpr int64_t kTokens = 0;

struct BuiltIn {
  std::string_view name;
  Live (*make)(const Task& task);
  int64_t multiple;  ///< must divide the image's side; kTokens: text model
};

constexpr auto kBuiltIn = std::to_array<BuiltIn>({{"cnn", cnn, 4},
                                                  {"gpt_tiny", gpt_tiny, kTokens},
                                                  {"llama_tiny", llama_tiny, kTokens},
                                                  {"mobilenet_v2", mobilenet_v2, 1},
                                                  {"resnet18", resnet18, 1},
                                                  {"resnet20", resnet20, 1},
                                                  {"resnet56", resnet56, 1},
                                                  {"vgg16_bn", vgg16_bn, 32},
                                                  {"vit_tiny", vit_tiny, 4}});

ConfigError wrong_inputs(std::string_view model, std::string_view found,
                         std::string_view expected) {
  return ConfigError("model \"", model, "\" does not take samples of ", found, "; expected ",
                     expected);
}

/// Derives the task from the samples. @throws as built_in does
Task task_of(const BuiltIn& network, const Dataset& data) {
  const Shape& dims = data.train.dims;
  const auto classes = static_cast<int64_t>(data.classes.size());
  const std::string name(network.name);
  if (network.multiple == kTokens) {
    if (!data.tokens) throw wrong_inputs(name, to_string(dims), "tokens: text:FILE");
    return {.classes = classes, .context = dims[0]};
  }
  const bool square = !data.tokens && dims.size() == 3 && dims[1] == dims[2];
  if (!square || dims[1] % network.multiple != 0) {
    throw wrong_inputs(name, to_string(dims),
                       "[c, h, w] with h = w, a multiple of " + std::to_string(network.multiple));
  }
  return {.channels = dims[0], .image = dims[1], .classes = classes};
}

}  // namespace

std::vector<std::string> built_in_names() {
  std::vector<std::string> names;
  for (const BuiltIn& each : kBuiltIn) names.emplace_back(each.name);
  return names;
}

bool is_built_in(const std::string& name) {
  return std::any_of(kBuiltIn.begin(), kBuiltIn.end(),
                     [&](const BuiltIn& each) { return each.name == name; });
}

MakeNet built_in(const std::string& name, const Dataset& data) {
  const auto found = std::find_if(kBuiltIn.begin(), kBuiltIn.end(),
                                  [&](const BuiltIn& each) { return each.name == name; });
  if (found == kBuiltIn.end()) return nullptr;
  return [task = task_of(*found, data), make = found->make] {
    return training::live_net([task, make] { return make(task); });
  };
}

}  // namespace parsimony::component
