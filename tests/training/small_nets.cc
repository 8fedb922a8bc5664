#include "tests/training/small_nets.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include <filesystem>

#include "parsimony/base/files.h"
#include "parsimony/training/net/trainable_model.h"

namespace parsimony::test {
namespace {

namespace jit = torch::jit;

struct SmallNetImpl : torch::nn::Module {
  SmallNetImpl() {
    register_module("conv1", conv1);
    register_module("norm", norm);
    register_module("conv2", conv2);
    register_module("fc", fc);
  }
  at::Tensor forward(const at::Tensor& x) {
    const at::Tensor a = at::relu(norm(conv1(x)));
    return fc(at::relu(conv2(a)).mean({2, 3}));
  }

  torch::nn::Conv2d conv1{torch::nn::Conv2dOptions(3, 8, 3).stride(2).padding(1)};
  torch::nn::BatchNorm2d norm{8};
  torch::nn::Conv2d conv2{torch::nn::Conv2dOptions(8, 12, 3).stride(2).padding(1)};
  torch::nn::Linear fc{12, 10};
};
TORCH_MODULE(SmallNet);

constexpr const char* kOnnx = R"(
    small (float[N,3,32,32] x) => (float[N,10] y)
    {
      a = Conv<pads=[1,1,1,1], strides=[2,2]>(x, W1)
      b = BatchNormalization<momentum=0.9>(a, gamma, beta, mean, var)
      c = Relu(b)
      d = Conv<pads=[1,1,1,1], strides=[2,2]>(c, W2, B2)
      e = Relu(d)
      f = GlobalAveragePool(e)
      g = Flatten(f)
      y = Gemm<transB=1>(g, W3, B3)
    })";

/// Modules within modules, as scripting makes them.
void write_script(const std::string& path) {
  const at::Generator generator = at::detail::createCPUGenerator(3);
  const auto unit = std::make_shared<jit::CompilationUnit>();
  const auto module = [&](const std::string& name) {
    jit::Module result(c10::QualifiedName("__torch__." + name), unit);
    result.register_attribute("training", c10::BoolType::get(), false);
    return result;
  };
  const auto add = [&](jit::Module& to, const std::string& name, at::IntArrayRef dims) {
    const at::Tensor values = at::randn(dims, generator).mul_(0.2);
    to.register_parameter(name, values.set_requires_grad(true), false);
  };
  jit::Module norm = module("Norm");
  add(norm, "gamma", {8});
  add(norm, "beta", {8});
  norm.register_buffer("mean", at::zeros({8}));
  norm.register_buffer("var", at::ones({8}));
  norm.define(
      "def forward(self, x):\n"
      "    return torch.batch_norm(x, self.gamma, self.beta, self.mean, self.var, self.training,\n"
      "                            0.1, 1e-05, False)\n");
  jit::Module body = module("Body");
  add(body, "W1", {8, 3, 3, 3});
  add(body, "W2", {12, 8, 3, 3});
  add(body, "B2", {12});
  body.register_module("norm", norm);
  body.define(
      "def forward(self, x):\n"
      "    a = torch.conv2d(x, self.W1, None, [2, 2], [1, 1])\n"
      "    b = torch.relu(self.norm.forward(a))\n"
      "    return torch.relu(torch.conv2d(b, self.W2, self.B2, [2, 2], [1, 1]))\n");
  jit::Module net = module("Small");
  net.register_module("body", body);
  add(net, "W3", {10, 12});
  add(net, "B3", {10});
  net.define(
      "def forward(self, x):\n"
      "    return torch.addmm(self.B3, torch.mean(self.body.forward(x), [2, 3]), "
      "torch.t(self.W3))\n");
  net.save(path, {{"notes.txt", "by hand"}});
}

}  // namespace

void write_onnx(const std::string& path, const std::string& text,
                const std::vector<Weighted>& weights) {
  onnx::ModelProto model = model_of(text);
  for (const Weighted& weight : weights) {
    add_weight(model, weight.name, weight.dims, "float", weight.kind);
  }
  write_file(path, model.SerializeAsString());
}

void move_weights_out(const std::string& path) {
  onnx::ModelProto model;
  model.ParseFromString(read_file(path));
  std::string data;
  for (onnx::TensorProto& tensor : *model.mutable_graph()->mutable_initializer()) {
    const auto add = [&](const std::string& key, const std::string& value) {
      onnx::StringStringEntryProto& entry = *tensor.add_external_data();
      entry.set_key(key);
      entry.set_value(value);
    };
    add("location", "weights.bin");
    add("offset", std::to_string(data.size()));
    add("length", std::to_string(tensor.raw_data().size()));
    data += tensor.raw_data();
    tensor.clear_raw_data();
    tensor.set_data_location(onnx::TensorProto::EXTERNAL);
  }
  write_file(std::filesystem::path(path).parent_path() / "weights.bin", data);
  write_file(path, model.SerializeAsString());
}

MakeNet live_small_net(double dropout) {
  const auto make = [dropout]() -> training::Live {
    SmallNet net;
    return {net.ptr(), [net, dropout](const at::Tensor& x) mutable {
              return at::dropout(net->forward(x), dropout, net->is_training());
            }};
  };
  return [make] { return training::live_net(make); };
}

MakeNet small_net(const std::string& kind, const TemporaryFolder& folder) {
  if (kind == "live") return live_small_net();
  const std::string path = folder / ("small." + kind);
  if (kind == "script") {
    write_script(path);
  } else {
    write_onnx(path, kOnnx,
               {{"W1", "8x3x3x3"},
                {"gamma", "8", "ones"},
                {"beta", "8"},
                {"mean", "8"},
                {"var", "8", "positive"},
                {"W2", "12x8x3x3"},
                {"B2", "12"},
                {"W3", "10x12"},
                {"B3", "10"}});
  }
  return training::file_net(path);
}

const Dataset& small_data() {
  static const Dataset data = read_dataset("shapes:256,64", {.seed = 1});
  return data;
}

at::Tensor example() { return at::zeros({1, 3, 32, 32}); }

at::Tensor predictions(training::TrainableModel& net, const at::Tensor& x) {
  const at::NoGradGuard no_grad;
  net.train(false);
  return net.forward(x);
}

int64_t size_of(training::TrainableModel& net) {
  int64_t size = 0;
  for (const auto& [name, tensor] : net.parameters()) size += tensor.numel();
  return size;
}

}  // namespace parsimony::test
