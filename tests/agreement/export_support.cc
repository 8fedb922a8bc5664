#include "tests/agreement/export_support.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cstring>
#include <optional>

#include "parsimony/base/errors.h"
#include "parsimony/engines/onnx_runtime.h"
#include "parsimony/engines/random_inputs.h"
#include "parsimony/onnx_io/export/export.h"
#include "parsimony/onnx_io/model_file.h"
#include "parsimony/onnx_io/reader.h"
#include "parsimony/torch_io/network.h"
#include "parsimony/torch_io/script/run.h"
#include "tests/support/fixture.h"

namespace parsimony::test {
namespace {

const std::optional<runtime::OnnxRuntime>& onnx_runtime() {
  static const auto library = []() -> std::optional<runtime::OnnxRuntime> {
    try {
      return runtime::find_onnx_runtime();
    } catch (const UnsupportedError&) {
      return std::nullopt;
    }
  }();
  return library;
}

std::vector<at::Tensor> by_module(const torch::jit::Module& module,
                                  const std::vector<TensorBytes>& inputs,
                                  const std::vector<InputSpec>& specs) {
  std::vector<at::Tensor> tensors;
  auto given = torch_io::to_tensors(inputs);
  auto next = given.begin();
  for (const InputSpec& spec : specs) {
    tensors.push_back(spec.value ? at::scalar_tensor(*spec.value, at::kLong) : *next++);
  }
  return torch_io::script_run(module)(tensors);
}

void compare(const torch::jit::Module& module, const std::string& path,
             const std::vector<InputSpec>& specs) {
  const onnx_io::ModelFile file(path);
  runtime::RandomInputOptions feed{.below = 2};
  for (const InputSpec& spec : specs) {
    if (!spec.value) feed.specs.push_back(spec);
  }
  const auto inputs = runtime::random_inputs(onnx_io::to_graph(file), feed);
  const auto expected = by_module(module, inputs, specs);
  const auto net = onnx_runtime()->open(path, {.threads = 1});
  net->bind(inputs);
  net->compute();
  const auto found = torch_io::to_tensors(net->outputs());
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    ASSERT_EQ(found[i].sizes(), expected[i].sizes());
    EXPECT_EQ(found[i].scalar_type(), expected[i].scalar_type());
    const at::Tensor a = expected[i].to(at::kDouble);
    const double largest = a.numel() == 0 ? 0 : a.abs().max().item<double>();
    EXPECT_TRUE(at::allclose(found[i].to(at::kDouble), a, 1e-4, 1e-4 * largest))
        << "output " << i << " of ONNX Runtime";
  }
}

}  // namespace

torch::jit::Module expression(const std::string& body, const std::vector<Shape>& weights) {
  at::manual_seed(3);
  torch::jit::Module module("Net");
  for (size_t i = 0; i < weights.size(); ++i) {
    module.register_parameter("w" + std::to_string(i), at::randn(weights[i]), false);
  }
  module.register_attribute("training", c10::BoolType::get(), false);
  module.define("def forward(self, x):\n    return " + body + "\n");
  return module;
}

Exported expect_exported(const torch::jit::Module& module, const std::vector<InputSpec>& inputs,
                         const ExportSettings& options) {
  const TemporaryFolder folder;
  const std::string path = folder / "net.onnx";
  Exported made = export_onnx(module, inputs, path, options);
  if (!onnx_runtime()) return made;
  compare(module, path, inputs);
  if (options.dynamic_batch) compare(module, path, onnx_io::with_other_batch(inputs));
  return made;
}

}  // namespace parsimony::test
