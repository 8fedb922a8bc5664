// The engines that bench compares compute the same: ONNX Runtime, where it is found, and ours.
#include <ATen/core/Tensor.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <optional>

#include "parsimony/graph/errors.h"
#include "parsimony/onnx_io/model_file.h"
#include "parsimony/onnx_io/reader.h"
#include "parsimony/runtime/onnx_runtime.h"
#include "parsimony/runtime/random_inputs.h"
#include "parsimony/torch_io/bound_run.h"
#include "parsimony/torch_io/prove.h"

namespace parsimony::test {
namespace {

std::vector<float> floats_of(const TensorBytes& tensor) {
  std::vector<float> elements(tensor.bytes.size() / sizeof(float));
  std::memcpy(elements.data(), tensor.bytes.data(), tensor.bytes.size());
  return elements;
}

std::vector<TensorBytes> by_libtorch(const Graph& graph, const std::vector<TensorBytes>& inputs) {
  const auto run =
      torch_io::bound_run([compute = torch_io::plain_run(graph),
                           tensors = torch_io::to_tensors(inputs)] { return compute(tensors); });
  run->run();
  run->run();
  return run->outputs();
}

TEST(Engines, Agree) {
  std::optional<runtime::OnnxRuntime> library;
  try {
    library = runtime::find_onnx_runtime();
  } catch (const UnsupportedError& error) {
    GTEST_SKIP() << error.what();
  }
  const onnx_io::ModelFile file(PARSIMONY_SOURCE_DIR "/examples/models/mnist_cnn.onnx");
  const Graph graph = onnx_io::to_graph(file);
  const auto net = library->open(file.path(), {.threads = 1});
  for (const int64_t batch : {1, 3}) {
    const auto inputs = runtime::random_inputs(graph, {.batch = batch});
    const auto ours = by_libtorch(graph, inputs);
    const auto run = net->bind(inputs);
    run->run();
    const auto theirs = run->outputs();
    ASSERT_EQ(ours.size(), theirs.size());
    for (size_t o = 0; o < ours.size(); ++o) {
      EXPECT_EQ(ours[o].dims, theirs[o].dims);
      const auto a = floats_of(ours[o]);
      const auto b = floats_of(theirs[o]);
      ASSERT_EQ(a.size(), b.size());
      for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-4 * (1 + std::abs(b[i])));
    }
  }
}

}  // namespace
}  // namespace parsimony::test
