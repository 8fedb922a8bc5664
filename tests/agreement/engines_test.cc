// The engines that bench compares compute the same: ONNX Runtime, where it is found, and ours.
#include <ATen/core/Tensor.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "parsimony/base/errors.h"
#include "parsimony/engines/onnx_runtime.h"
#include "parsimony/engines/random_inputs.h"
#include "parsimony/onnx_io/model_file.h"
#include "parsimony/onnx_io/reader.h"
#include "parsimony/torch_io/network.h"
#include "tests/support/fixture.h"

namespace parsimony::test {
namespace {

std::vector<float> floats_of(const TensorBytes& tensor) {
  std::vector<float> elements(tensor.bytes.size() / sizeof(float));
  std::memcpy(elements.data(), tensor.bytes.data(), tensor.bytes.size());
  return elements;
}

std::vector<TensorBytes> by_libtorch(const Graph& graph, const std::vector<TensorBytes>& inputs) {
  torch_io::TorchNetwork network = torch_io::plain_run(graph);
  network.bind(inputs);
  network.compute();
  network.compute();
  return network.outputs();
}

/// The largest difference, by the largest element; not a number counts as itself.
double difference(const std::vector<float>& a, const std::vector<float>& b) {
  double most = 0;
  double largest = 1e-3;
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(a[i]) && std::isnan(b[i])) continue;
    if (a[i] == b[i]) continue;  // infinite ones too
    most = std::max<double>(most, std::abs(a[i] - b[i]));
    if (std::isnan(a[i]) || std::isnan(b[i])) most = std::numeric_limits<double>::infinity();
  }
  for (const float x : b) {
    if (std::isfinite(x)) largest = std::max<double>(largest, std::abs(x));
  }
  return most / largest;
}

/// Compares what both compute, where the numbers are floats. @returns how many were compared
int compare(runtime::OnnxRuntime& library, const Graph& graph, const std::string& path,
            const std::vector<TensorBytes>& inputs) {
  const auto ours = by_libtorch(graph, inputs);
  const auto net = library.open(path, {.threads = 1});
  net->bind(inputs);
  net->compute();
  const auto theirs = net->outputs();
  EXPECT_EQ(ours.size(), theirs.size());
  int compared = 0;
  for (size_t o = 0; o < std::min(ours.size(), theirs.size()); ++o) {
    EXPECT_EQ(ours[o].dims, theirs[o].dims);
    if (theirs[o].dtype != DType::kFloat32 || ours[o].dims != theirs[o].dims) continue;
    EXPECT_LE(difference(floats_of(ours[o]), floats_of(theirs[o])), 1e-4) << "output " << o;
    ++compared;
  }
  return compared;
}

class Engines : public ::testing::Test {
 protected:
  void SetUp() override {
    try {
      library_.emplace(runtime::find_onnx_runtime());
    } catch (const UnsupportedError& error) {
      GTEST_SKIP() << error.what();
    }
  }

  std::optional<runtime::OnnxRuntime> library_;
};

TEST_F(Engines, Agree) {
  const onnx_io::ModelFile file(PARSIMONY_SOURCE_DIR "/examples/models/mnist_cnn.onnx");
  const Graph graph = onnx_io::to_graph(file);
  for (const int64_t batch : {1, 3}) {
    compare(*library_, graph, file.path(), runtime::random_inputs(graph, {.batch = batch}));
  }
}

/// ONNX Runtime computes with integers, or halves, what the file multiplies as floats; and forms
/// that the executor does not run.
const std::set<std::string> kOtherwise = {
    "dequantize_axis_1",     "float16_cast", "quantized_network", "qdq_bias_one_scale",
    "ms_fused_matmul_batch", "sequence_map", "tf_idf_vectorizer"};

TEST_F(Engines, AgreeOnEveryFixture) {
  const TemporaryFolder folder;
  int compared = 0;
  for (const Fixture& fixture : all_fixtures()) {
    if (!fixture.onnxruntime || kOtherwise.contains(fixture.name)) continue;
    SCOPED_TRACE(fixture.name);
    const std::string path = folder / (fixture.name + ".onnx");
    std::ofstream(path, std::ios::binary) << fixture.model.SerializeAsString();
    try {
      const onnx_io::ModelFile file(path);
      const Graph graph = onnx_io::to_graph(file);
      runtime::RandomInputOptions options{.below = 2};  // every table has as many rows
      for (const std::string& spec : fixture.inputs)
        options.specs.push_back(parse_input_spec(spec));
      compared += compare(*library_, graph, path, runtime::random_inputs(graph, options));
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what();
    }
  }
  std::cout << compared << " outputs\n";
  if (std::getenv("PARSIMONY_FIXTURE") != nullptr) return;
  EXPECT_GE(compared, 300);
}

}  // namespace
}  // namespace parsimony::test
