#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>

#include "parsimony/api/importance.h"
#include "parsimony/api/network_error.h"
#include "parsimony/base/errors.h"
#include "parsimony/base/files.h"
#include "parsimony/onnx_io/model_file.h"
#include "parsimony/onnx_io/reader.h"
#include "tests/support/fixture.h"

namespace parsimony::test {
namespace {

TensorBytes tensor(const std::vector<float>& elements, Shape dims) {
  TensorBytes result{"y", DType::kFloat32, std::move(dims), {}};
  result.bytes.resize(elements.size() * sizeof(float));
  std::memcpy(result.bytes.data(), elements.data(), result.bytes.size());
  return result;
}

/// x · w1 (8 wide) · w2 (4 wide) · w3
struct ProbedNetwork {
  TemporaryFolder folder;
  std::unique_ptr<onnx_io::ModelFile> file;
  Graph graph;

  ProbedNetwork() {
    onnx::ModelProto model = model_of(
        "net (float[2,3] x) => (float[2,2] y)\n"
        "{ a = MatMul(x, w1)\n b = MatMul(a, w2)\n y = MatMul(b, w3) }");
    add_weight(model, "w1", "3x8");
    add_weight(model, "w2", "8x4");
    add_weight(model, "w3", "4x2");
    std::string bytes;
    model.SerializeToString(&bytes);
    write_file(folder / "net.onnx", bytes);
    file = std::make_unique<onnx_io::ModelFile>(folder / "net.onnx");
    graph = onnx_io::to_graph(*file);
  }
};

TEST(RelativeError, IsOfTheWholeOutput) {
  const std::vector<TensorBytes> requested = {tensor({3, 4}, {1, 2})};
  EXPECT_EQ(relative_error(requested, requested), 0);
  EXPECT_DOUBLE_EQ(relative_error(std::vector{tensor({3, 3}, {1, 2})}, requested), 0.2);
  EXPECT_DOUBLE_EQ(relative_error(std::vector{tensor({0, 0}, {1, 2})}, requested), 1);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(std::isinf(relative_error(std::vector{tensor({nan, 4}, {1, 2})}, requested)));
}

TEST(Unexplained, IsWhatNoFactorMends) {
  const Outputs requested = {{tensor({1, 5, 2, 3}, {2, 2})}, {tensor({6, 1}, {1, 2})}};
  EXPECT_NEAR(unexplained(requested, requested), 0, 1e-7);
  // From the means 3 and 3: -2 2, -1 0, 3 -2. Three times as much, from other means, is the same.
  const Outputs scaled = {{tensor({4, 17, 7, 11}, {2, 2})}, {tensor({19, 5}, {1, 2})}};
  EXPECT_NEAR(unexplained(scaled, requested), 0, 1e-7);
  const Outputs constant = {{tensor({1, 9, 1, 9}, {2, 2})}, {tensor({1, 9}, {1, 2})}};
  EXPECT_EQ(unexplained(constant, requested), 1);
  const Outputs against = {{tensor({-1, -5, -2, -3}, {2, 2})}, {tensor({-6, -1}, {1, 2})}};
  EXPECT_EQ(unexplained(against, requested), 1);
  // Only the first column: -2, -1, 3 of them; 14 of 22 are explained.
  const Outputs half = {{tensor({1, 0, 2, 0}, {2, 2})}, {tensor({6, 0}, {1, 2})}};
  EXPECT_NEAR(unexplained(half, requested), std::sqrt(1 - 14.0 / 22), 1e-7);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Outputs broken = {{tensor({1, nan, 2, 3}, {2, 2})}, {tensor({6, 1}, {1, 2})}};
  EXPECT_TRUE(std::isinf(unexplained(broken, requested)));
}

/// An engine whose networks say their first weight's width for every sample.
class WidthNetwork final : public parsimony::Network {
 public:
  explicit WidthNetwork(float width) : width_(width) {}
  std::vector<TensorList> run(const std::vector<TensorList>& inputs, const RunOptions&) override {
    return std::vector<TensorList>(inputs.size(), outputs());
  }
  void bind(const TensorList&) override {}
  void compute() override {}
  TensorList outputs() override {
    // Class 1 wins as long as the first weight is wide.
    return {tensor({6, width_, 0, 9}, {2, 2})};
  }

 private:
  float width_;
};

class WidthEngine final : public Engine {
 public:
  std::string name() const override { return "width"; }
  std::string version() const override { return "1"; }
  std::unique_ptr<parsimony::Network> open(const Graph& graph, const OpenOptions&) override {
    return std::make_unique<WidthNetwork>(static_cast<float>(graph.weights[WeightId(0)].dims[1]));
  }
  std::unique_ptr<parsimony::Network> open_masked(const Graph&, const Plan&,
                                                  const OpenOptions&) override {
    throw UnsupportedError("it masks nothing");
  }
};

TEST(NetworkComparison, CountsLabelsWhereThereAreAny) {
  const ProbedNetwork net;
  WidthEngine engine;
  const NetworkComparison accuracy(net.graph, engine, {{{}}, {1, 1}});
  EXPECT_EQ(accuracy.accuracy(), 1);
  EXPECT_EQ(accuracy(net.graph), 0);
  Graph small = net.graph;
  small.weights[WeightId(0)].dims[1] = 5;
  EXPECT_EQ(accuracy(small), 0.5) << "the first sample's class is 0 now";
  const NetworkComparison outputs(net.graph, engine, {{{}}, {}});
  EXPECT_LT(outputs.accuracy(), 0);
  EXPECT_DOUBLE_EQ(outputs(small), 3 / std::sqrt(36.0 + 64 + 81));
}

TEST(Sensitivity, CutsOneGroupAfterTheOther) {
  ProbedNetwork net;
  const Analysis analysis = analyse(net.graph);
  std::vector<std::vector<int64_t>> seen;
  const auto curves = sensitivity(net.graph, analysis, {}, [&](const Trial& trial) {
    const Graph& small = trial.graph();
    seen.push_back({small.weights[WeightId(0)].dims[1], small.weights[WeightId(1)].dims[1]});
    return 32.0 - static_cast<double>(small.weights[WeightId(1)].count());
  });
  ASSERT_EQ(curves.size(), 2U);
  // 0.1 of 8 channels is none; 0.2 and 0.3 of 4 are none and one.
  EXPECT_EQ(curves[0].curve.errors, (std::vector<double>{0, 4, 8, 12, 16, 16, 20, 24, 28}));
  EXPECT_EQ(curves[1].curve.errors, (std::vector<double>{0, 0, 8, 8, 16, 16, 16, 24, 24}));
  EXPECT_EQ(seen.size(), 7U + 3U) << "equal cuts are run once";
  for (const auto& widths : seen) EXPECT_TRUE(widths[0] == 8 || widths[1] == 4);
}

TEST(Sensitivity, TakesTheLowestScoresFirst) {
  ProbedNetwork net;
  const Analysis analysis = analyse(net.graph);
  const Scores scores = find_criterion("l1").score(net.graph, analysis.coupling.groups[GroupId(1)],
                                                   CriterionOptions{});
  const auto lowest = std::min_element(scores.begin(), scores.end()) - scores.begin();
  SensitivityOptions options;
  options.ratios = {0.25};
  sensitivity(net.graph, analysis, options, [&](const Trial& trial) {
    const Graph& small = trial.graph();
    if (small.weights[WeightId(2)].dims[0] != 3) return 0.0;
    const auto* kept = reinterpret_cast<const float*>(small.weights[WeightId(2)].data);
    const auto* whole = reinterpret_cast<const float*>(net.graph.weights[WeightId(2)].data);
    EXPECT_EQ(kept[0], lowest == 0 ? whole[2] : whole[0]);
    return 0.0;
  });
}

TEST(Sensitivity, IsNotForSingleElements) {
  ProbedNetwork net;
  const Analysis analysis = analyse(net.graph);
  SensitivityOptions options;
  options.criterion = "level";
  EXPECT_THROW(sensitivity(net.graph, analysis, options, [](const Trial&) { return 0.0; }),
               ConfigError);
}

}  // namespace
}  // namespace parsimony::test
