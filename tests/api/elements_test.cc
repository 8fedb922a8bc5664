// Criteria over elements, from a model to the file that comes out.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <set>

#include "parsimony/api/prune.h"
#include "parsimony/base/errors.h"
#include "parsimony/onnx_io/editor.h"
#include "parsimony/onnx_io/reader.h"
#include "tests/support/fixture.h"

namespace parsimony::test {
namespace {

constexpr char kPerceptron[] =
    "net (float[2,8] x) => (float[2,6] y) { h = MatMul(x, w1)\n r = Relu(h)\n y = MatMul(r, w2) }";

class Elements : public ::testing::Test {
 protected:
  /// Prunes the model and writes what is left to a file.
  Pruning prune(const std::string& config, const std::string& type = "float",
                const Measurement& measure = nullptr) {
    onnx::ModelProto model = model_of(kPerceptron);
    add_weight(model, "w1", "8x16", type);
    add_weight(model, "w2", "16x6", type);
    std::ofstream(folder_ / "in.onnx", std::ios::binary) << model.SerializeAsString();
    onnx_io::ModelFile file(folder_ / "in.onnx");
    Graph graph = onnx_io::to_graph(file);
    PruneRequest request;
    PruneServices services;
    services.measure = measure;
    request.config = parse_config(config, "c.json");
    Pruning pruning = plan_pruning(graph, request, services);
    onnx_io::OnnxEditor editor(file);
    apply_plan(pruning.plan, graph, pruning.analysis.probe, editor);
    file.write(folder_ / "out.onnx");
    return pruning;
  }

  /// Elements and shape of a tensor of the written file.
  std::pair<std::vector<double>, Shape> written(const std::string& name) const {
    onnx_io::ModelFile file(folder_ / "out.onnx");
    const Graph graph = onnx_io::to_graph(file);
    for (const Weight& weight : graph.weights) {
      if (weight.name == name) return {to_host(weight).floats, weight.dims};
    }
    throw std::runtime_error("no tensor " + name);
  }

  TemporaryFolder folder_;
};

/// The most elements that are not zero in four neighbours along axis 0 of a matrix.
int most_of_four(const std::vector<double>& elements, const Shape& dims) {
  int most = 0;
  for (int64_t column = 0; column < dims[1]; ++column) {
    for (int64_t row = 0; row < dims[0]; row += 4) {
      int count = 0;
      for (int64_t i = row; i < std::min(row + 4, dims[0]); ++i) {
        count += elements[i * dims[1] + column] != 0 ? 1 : 0;
      }
      most = std::max(most, count);
    }
  }
  return most;
}

TEST_F(Elements, PatternsHoldInTheFile) {
  const Pruning pruning = prune(R"([{"criterion": "2:4"}])");
  for (const char* name : {"w1", "w2"}) {
    const auto [elements, dims] = written(name);
    EXPECT_EQ(most_of_four(elements, dims), 2) << name;
    EXPECT_EQ(std::count(elements.begin(), elements.end(), 0.0), element_count(dims) / 2) << name;
  }
  ASSERT_EQ(pruning.elements.size(), 2U);
  const ElementOutcome requested = {"w1", "2:4", 128, 64, "2:4", 0, true};
  EXPECT_EQ(pruning.elements[0], requested);
}

TEST_F(Elements, PatternsHoldInWhatPrunedChannelsLeave) {
  const Pruning pruning = prune(
      R"([{"op_names": ["h"], "sparse_ratio": 0.375}, {"op_names": ["y"], "criterion": "2:4"}])");
  const auto [elements, dims] = written("w2");
  EXPECT_EQ(dims, (Shape{10, 6}));
  EXPECT_EQ(most_of_four(elements, dims), 2);
  // Of every ten inputs two groups of four lose two each; the rest of two stays.
  EXPECT_EQ(pruning.elements, (std::vector<ElementOutcome>{{"w2", "2:4", 60, 24, "2:4", 0, true}}));
}

TEST_F(Elements, WhatIsNotZeroStaysBitForBit) {
  for (const char* type : {"float", "float16", "double"}) {
    prune(R"([{"criterion": "3:4"}])", type);
    const auto [after, dims] = written("w1");
    onnx_io::ModelFile file(folder_ / "in.onnx");
    const Graph graph = onnx_io::to_graph(file);
    const std::vector<double> before = to_host(graph.weights[WeightId(0)]).floats;
    int zeros = 0;
    for (size_t i = 0; i < after.size(); ++i) {
      zeros += after[i] == 0 ? 1 : 0;
      EXPECT_TRUE(after[i] == 0 || after[i] == before[i]) << type;
    }
    EXPECT_EQ(zeros, 32) << type;
  }
}

TEST_F(Elements, ValuesAreCutWithTheChannelsThatDie) {
  const Pruning pruning = prune(R"([{"op_names": ["y"], "criterion": "block:6x1",
                                     "sparse_ratio": 0.25}])");
  const auto [elements, dims] = written("w2");
  EXPECT_EQ(dims, (Shape{12, 6}));
  EXPECT_EQ(std::count(elements.begin(), elements.end(), 0.0), 0);
  EXPECT_EQ(written("w1").second, (Shape{8, 12}));
  EXPECT_EQ(pruning.elements, (std::vector<ElementOutcome>{{"w2", "block:6x1", 72, 0, "", 0}}));
  EXPECT_EQ(pruning.notes.back(), "4 channels became zero and are removed");
}

TEST_F(Elements, MasksSayWhatBecameZero) {
  const Pruning pruning = prune(R"([{"criterion": "2:4"}])");
  ASSERT_EQ(pruning.element_masks.size(), 2U);
  const auto [elements, dims] = written("w1");
  EXPECT_EQ(pruning.element_masks[0].tensor, "w1");
  for (size_t i = 0; i < elements.size(); ++i) {
    EXPECT_EQ(pruning.element_masks[0].keep[i] != 0, elements[i] != 0);
  }
}

TEST_F(Elements, ThePlanSaysWhichTensorsChange) {
  const Pruning pruning = prune(R"([{"criterion": "2:4"}])");
  ASSERT_EQ(pruning.plan.updates.size(), 2U);
  EXPECT_EQ(pruning.plan.updates[0].tensor, "w1");
  EXPECT_EQ(pruning.plan.updates[0].reason, "2:4: elements are zero");
  EXPECT_EQ(pruning.plan.updates[0].values.size(), 128 * sizeof(float));
}

TEST_F(Elements, WhatIsMeasuredDecides) {
  std::set<std::string> asked;
  const Measurement measure = [&](const Graph&, const Facts&, const Coupling&, const Needs& needs) {
    asked = needs.inputs;
    Statistics statistics;
    // Of the first layer's inputs only the last four are ever there.
    Eigen::VectorXd squares = Eigen::VectorXd::Ones(8);
    squares.head(4).setZero();
    statistics.inputs["w1"] = {1, squares.asDiagonal()};
    return statistics;
  };
  const Pruning pruning = prune(
      R"([{"op_names": ["h"], "criterion": "sparsegpt", "sparse_ratio": 0.5}])", "float", measure);
  EXPECT_EQ(asked, (std::set<std::string>{"w1"}));
  const auto [elements, dims] = written("w1");
  for (size_t i = 0; i < elements.size(); ++i) EXPECT_EQ(elements[i] == 0, i < 64) << i;
  EXPECT_EQ(pruning.plan.updates[0].reason,
            "sparsegpt: elements are zero, the others compensate for them");
}

TEST_F(Elements, SaysThatDataAreMissing) {
  try {
    prune(R"([{"criterion": "wanda_elements", "sparse_ratio": 0.5}])");
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(),
                 "criterion \"wanda_elements\" needs data that runs through the network, and there "
                 "is none: give --calibration DATA, for example --calibration cifar10:DIR; in a "
                 "program, PruneServices::measure");
  }
}

}  // namespace
}  // namespace parsimony::test
