// One network from three sources: the live module, its TorchScript file and its ONNX file. They
// have the same groups and costs, and the same small weights come out of them.
#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/jit/serialization/import.h>

#include "parsimony/api/prune.h"
#include "parsimony/onnx_io/editor.h"
#include "parsimony/onnx_io/model_file.h"
#include "parsimony/onnx_io/reader.h"
#include "parsimony/torch_io/prune.h"
#include "parsimony/torch_io/script/editor.h"
#include "parsimony/torch_io/script/read.h"
#include "tests/agreement/answer.h"
#include "tests/agreement/networks.h"
#include "tests/agreement/onnx_export.h"
#include "tests/support/fixture.h"

namespace parsimony::test {
namespace {

using torch_io::ScriptGraph;

Tensors tensors_of(const torch::nn::Module& module) {
  Tensors tensors;
  for (const auto& parameter : module.named_parameters()) {
    tensors.emplace(parameter.key(), parameter.value().detach().clone());
  }
  for (const auto& buffer : module.named_buffers()) {
    tensors.emplace(buffer.key(), buffer.value().clone());
  }
  return tensors;
}

Tensors tensors_of(const torch::jit::Module& module) {
  Tensors tensors;
  for (const auto& parameter : module.named_parameters()) {
    tensors.emplace(parameter.name, parameter.value.detach());
  }
  for (const auto& buffer : module.named_buffers()) tensors.emplace(buffer.name, buffer.value);
  return tensors;
}

class Agreement : public testing::TestWithParam<const char*> {
 protected:
  Agreement() : network_(make_network(GetParam())) {
    for (const auto& [name, tensor] : tensors_of(*network_.module)) names_.insert(name);
    request_.inputs = {{network_.input, {}}};
  }

  at::Tensor example() const { return at::ones(network_.input); }
  torch::jit::Module traced() {
    return torch_io::traced(*network_.module, network_.forward, {example()});
  }
  std::string saved() {
    const std::string path = folder_ / "network.pt";
    traced().save(path);
    return path;
  }

  Answer live_answer() {
    const int64_t dense = count_parameters(*network_.module);
    ScriptGraph script = torch_io::read_script(traced(), request_.inputs);
    const Pruning pruning = plan_pruning(script.graph, request_);
    Answer answer = answer_of(script.graph, pruning, names_);
    const Pruned pruned = prune(*network_.module, network_.forward, {example()}, request_.config);
    EXPECT_EQ(pruned.dense.macs, answer.dense.macs);
    EXPECT_EQ(pruned.small.macs, answer.small.macs);
    EXPECT_EQ(pruned.dense.params, dense);
    EXPECT_EQ(pruned.small.params, count_parameters(*network_.module));
    answer.weights = tensors_of(*network_.module);
    answer.small_weights =
        count_weights(torch_io::read_script(traced(), request_.inputs).graph, names_);
    return answer;
  }

  Answer script_answer(const std::string& path) {
    ScriptGraph script = torch_io::read_script(torch::jit::load(path), request_.inputs);
    const Pruning pruning = plan_pruning(script.graph, request_);
    Answer answer = answer_of(script.graph, pruning, names_);
    torch_io::ScriptEditor editor(script);
    apply_plan(pruning.plan, script.graph, pruning.analysis.probe, editor);
    const torch::jit::Module small = editor.finish();
    answer.weights = tensors_of(small);
    answer.small_weights =
        count_weights(torch_io::read_script(small, request_.inputs).graph, names_);
    return answer;
  }

  Answer onnx_answer(const std::string& path) {
    onnx_io::ModelFile file(path);
    Graph graph = onnx_io::to_graph(file);
    const Pruning pruning = plan_pruning(graph, request_);
    Answer answer = answer_of(graph, pruning, names_);
    onnx_io::OnnxEditor editor(file);
    apply_plan(pruning.plan, graph, pruning.analysis.probe, editor);
    const Graph small = onnx_io::to_graph(file);
    answer.weights = weights_of(small);
    answer.small_weights = count_weights(small, names_);
    return answer;
  }

  void expect_same(const Answer& live, const Answer& other) const {
    EXPECT_EQ(live.groups, other.groups);
    EXPECT_EQ(live.dense.macs, other.dense.macs);
    EXPECT_EQ(live.small.macs, other.small.macs);
    EXPECT_EQ(live.dense_weights, other.dense_weights);
    EXPECT_EQ(live.small_weights, other.small_weights);
    for (const auto& [name, tensor] : live.weights) {
      if (name.ends_with("num_batches_tracked")) continue;  // no part of the computation
      const auto found = other.weights.find(name);
      if (found == other.weights.end()) {
        ADD_FAILURE() << name << " is missing";
      } else {
        EXPECT_TRUE(at::equal(tensor, found->second))
            << name << ": " << tensor.sizes() << " and " << found->second.sizes();
      }
    }
  }

  const TemporaryFolder folder_;
  Network network_;
  std::set<std::string> names_;
  PruneRequest request_ = from_shorthand({.criterion = "l1", .ratio = 0.5});
};

TEST_P(Agreement, TorchScript) {
  const Answer script = script_answer(saved());
  const Answer live = live_answer();
  EXPECT_NE(live.groups, "");
  EXPECT_LT(live.small.macs, live.dense.macs);
  EXPECT_EQ(live.dense.params, script.dense.params);
  EXPECT_EQ(live.small.params, script.small.params);
  expect_same(live, script);
}

TEST_P(Agreement, Onnx) {
  const std::string path = export_onnx(network_.name, saved(), network_.input);
  if (path.empty()) GTEST_SKIP() << "no PyTorch: run tools/setup.sh";
  const Answer onnx = onnx_answer(path);
  expect_same(live_answer(), onnx);
}

INSTANTIATE_TEST_SUITE_P(Networks, Agreement,
                         testing::Values("cifar_cnn", "resnet18", "mobilenet_v2", "unet", "vit",
                                         "lstm"),
                         [](const auto& network) { return std::string(network.param); });

}  // namespace
}  // namespace parsimony::test
