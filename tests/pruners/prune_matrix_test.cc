#include <gtest/gtest.h>

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <cstring>

#include "parsimony/base/errors.h"
#include "parsimony/pruners/elements/elements.h"
#include "tests/graph/builder.h"

namespace parsimony::elements {
namespace {

using test::Attributes;
using test::Builder;
using Bits = std::vector<uint8_t>;

/// One layer with the weight `w`.
struct OneLayer {
  Builder b;
  ElementTask task;
  Statistics statistics;
  Request request;

  OneLayer(const std::string& op, const std::vector<float>& elements, Shape dims,
           Attributes attributes = {}) {
    const ValueId x = b.input("x", {1, 1});
    const ValueId w = b.weight("w", elements, std::move(dims), DType::kFloat32);
    b.node(op, {x, w}, "y", std::move(attributes));
    finish(b.graph);
    task = {b.graph.value(w).weight, 0, {{NodeId(0), w}}};
    request.ratio = 0.5;
  }

  void moments(const Eigen::MatrixXd& second) { statistics.inputs["w"] = {1, second}; }

  std::variant<PrunedMatrix, Refusal> run(const std::string& criterion,
                                          const std::vector<AxisKeep>& cuts = {}) {
    request.criterion = criterion;
    return prune_matrix(b.graph, task, request, cuts, &statistics);
  }

  Bits keep(const std::string& criterion, const std::vector<AxisKeep>& cuts = {}) {
    return std::get<PrunedMatrix>(run(criterion, cuts)).mask.keep;
  }
  std::string refusal(const std::string& criterion) { return std::get<Refusal>(run(criterion)); }
};

std::vector<float> floats(const PrunedMatrix& matrix) {
  std::vector<float> result(matrix.values.size() / sizeof(float));
  std::memcpy(result.data(), matrix.values.data(), matrix.values.size());
  return result;
}

const std::vector<float> kEight = {1, -8, 3, 4, -5, 6, 7, 2};

TEST(PruneMatrix, PatternsLieAlongTheInputAxis) {
  // MatMul [in 4, out 2]: columns are (1 3 -5 7) and (-8 4 6 2).
  EXPECT_EQ(OneLayer("MatMul", kEight, {4, 2}).keep("2:4"), (Bits{0, 1, 0, 0, 1, 1, 1, 0}));
  EXPECT_EQ(OneLayer("Gemm", kEight, {4, 2}).keep("2:4"), (Bits{0, 1, 0, 0, 1, 1, 1, 0}));
  // Gemm with transB [out 2, in 4].
  OneLayer turned("Gemm", kEight, {2, 4}, {{"transB", int64_t{1}}});
  EXPECT_EQ(turned.keep("nm"), (Bits{0, 1, 0, 1, 0, 1, 1, 0}));
}

TEST(PruneMatrix, NewValuesAreTheOldOnesAndZeros) {
  OneLayer net("Gemm", kEight, {2, 4}, {{"transB", int64_t{1}}});
  EXPECT_EQ(floats(std::get<PrunedMatrix>(net.run("2:4"))),
            (std::vector<float>{0, -8, 0, 4, 0, 6, 7, 0}));
}

TEST(PruneMatrix, EveryPositionOfAKernelHasPatternsOfItsOwn) {
  // Conv [out 1, in 4, 2 positions]: position 0 reads 1 3 -5 7, position 1 -8 4 6 2.
  OneLayer net("Conv", kEight, {1, 4, 2});
  EXPECT_EQ(net.keep("2:4"), (Bits{0, 1, 0, 0, 1, 1, 1, 0}));
}

TEST(PruneMatrix, ATransposedWeightIsFollowedToItsAxes) {
  Builder b;
  const ValueId x = b.input("x", {1, 4});
  const ValueId w = b.weight("w", kEight, {2, 4}, DType::kFloat32);
  const ValueId t = b.node("Transpose", {w}, "t", {{"perm", std::vector<int64_t>{1, 0}}});
  b.node("MatMul", {x, t}, "y");
  finish(b.graph);
  const ElementTask task = {b.graph.value(w).weight, 0, {{NodeId(1), w}}};
  const auto found = prune_matrix(b.graph, task, {.criterion = "2:4"}, {}, nullptr);
  EXPECT_EQ(std::get<PrunedMatrix>(found).mask.keep, (Bits{0, 1, 0, 1, 0, 1, 1, 0}));
}

TEST(PruneMatrix, WandaWeighsByTheInputs) {
  OneLayer net("Gemm", {4, 3, 2, 1, 1, 1, 1, 1}, {2, 4}, {{"transB", int64_t{1}}});
  net.moments(Eigen::VectorXd{{1, 1, 9, 64}}.asDiagonal());
  // Row 0: 4 3 6 8; row 1: 1 1 3 8.
  EXPECT_EQ(net.keep("wanda_elements"), (Bits{0, 0, 1, 1, 0, 0, 1, 1}));
  EXPECT_EQ(net.keep("wanda_elements:1:2"), (Bits{1, 0, 0, 1, 1, 0, 0, 1}));
}

TEST(PruneMatrix, WandaReadsTheUnfoldedInputOfAConvolution) {
  OneLayer net("Conv", {1, 1, 1, 1}, {1, 2, 2});
  net.moments(Eigen::VectorXd{{1, 9, 4, 16}}.asDiagonal());
  EXPECT_EQ(net.keep("wanda_elements"), (Bits{0, 1, 0, 1}));
}

TEST(PruneMatrix, GroupsOfAConvolutionHaveMomentsOfTheirOwn) {
  OneLayer net("Conv", {1, 1, 1, 1, 1, 1, 1, 1}, {4, 2, 1}, {{"group", int64_t{2}}});
  net.moments((Eigen::MatrixXd(2, 4) << 1, 0, 4, 0, 0, 2, 0, 3).finished());
  EXPECT_EQ(net.keep("wanda_elements"), (Bits{0, 1, 0, 1, 1, 0, 1, 0}));
}

TEST(PruneMatrix, SparseGptCompensates) {
  OneLayer net("MatMul", {1, 2}, {2, 1});
  net.moments(Eigen::MatrixXd{{1, 1}, {1, 1}});
  const auto matrix = std::get<PrunedMatrix>(net.run("sparsegpt"));
  EXPECT_EQ(matrix.mask.keep, (Bits{0, 1}));
  EXPECT_EQ(floats(matrix)[0], 0);
  // 2 + 1 · h01 / (h11 + 0.01) with damping of 1 %.
  EXPECT_NEAR(floats(matrix)[1], 2 + 1 / 1.01, 1e-6);
}

TEST(PruneMatrix, SparseGptWithAPatternOrdersMomentsLikeColumns) {
  // Position 0 reads channels 0 and 1 as places 0 and 2, which are equal inputs.
  Eigen::MatrixXd second = Eigen::MatrixXd::Identity(4, 4);
  second(0, 2) = second(2, 0) = 1;
  OneLayer net("Conv", {1, 5, 2, 6}, {1, 2, 2});
  net.moments(second);
  const auto matrix = std::get<PrunedMatrix>(net.run("sparsegpt:1:2"));
  EXPECT_EQ(matrix.mask.keep, (Bits{0, 0, 1, 1}));
  EXPECT_NEAR(floats(matrix)[2], 2 + 1 / 1.01, 1e-6);
  EXPECT_NEAR(floats(matrix)[3], 6, 1e-6);
}

TEST(PruneMatrix, BlocksAreOutputsTimesInputs) {
  // [in 2, out 4] as rows of outputs: (1 1) (1 1) (5 2) (5 2); blocks of 2x1: 2, 2, 50, 8.
  OneLayer net("MatMul", {1, 1, 5, 5, 1, 1, 2, 2}, {2, 4});
  EXPECT_EQ(net.keep("block:2x1"), (Bits{0, 0, 1, 1, 0, 0, 1, 1}));
}

TEST(PruneMatrix, OnlyWhatTheCutsLeaveCounts) {
  OneLayer net("Gemm", {1, 9, 2, 3, 4, 5, 6, 7, 8, 9}, {2, 5}, {{"transB", int64_t{1}}});
  const AxisKeep inputs{1, 5, {0, 2, 3, 4}};
  EXPECT_EQ(net.keep("2:4", {inputs}), (Bits{0, 0, 0, 1, 1, 0, 0, 0, 1, 1}));
  net.moments(Eigen::VectorXd{{100, 1, 1, 1, 1}}.asDiagonal());
  EXPECT_EQ(net.keep("wanda_elements", {inputs, {0, 2, {0}}}),
            (Bits{1, 0, 0, 0, 1, 0, 0, 0, 0, 0}));
}

template <typename T>
void expect_type_survives(DType type) {
  Builder b;
  const ValueId x = b.input("x", {1, 2});
  const ValueId w = b.weight<T>("w", {T(1), T(2), T(-3), T(0.5)}, {2, 2}, type);
  b.node("MatMul", {x, w}, "y");
  finish(b.graph);
  const ElementTask task = {b.graph.value(w).weight, 0, {{NodeId(0), w}}};
  Statistics statistics;
  statistics.inputs["w"] = {1, Eigen::MatrixXd{{1, 1}, {1, 1}}};
  const auto masked =
      std::get<PrunedMatrix>(prune_matrix(b.graph, task, {.criterion = "1:2"}, {}, nullptr));
  const T expected[] = {T(0), T(2), T(-3), T(0)};
  ASSERT_EQ(masked.values.size(), sizeof expected);
  EXPECT_EQ(std::memcmp(masked.values.data(), expected, sizeof expected), 0);

  const auto compensated = std::get<PrunedMatrix>(
      prune_matrix(b.graph, task, {.criterion = "sparsegpt:1:2"}, {}, &statistics));
  T found[4];
  ASSERT_EQ(compensated.values.size(), sizeof found);
  std::memcpy(found, compensated.values.data(), sizeof found);
  // [in, out]: output 0 keeps -3 + 1/1.01, output 1 keeps the 2, whose column comes first.
  EXPECT_EQ(found[0], T(0));
  EXPECT_NEAR(static_cast<double>(found[2]), -3 + 1 / 1.01, 0.01);
}

TEST(PruneMatrix, EveryFloatingTypeStaysWhatItIs) {
  expect_type_survives<float>(DType::kFloat32);
  expect_type_survives<double>(DType::kFloat64);
  expect_type_survives<Eigen::half>(DType::kFloat16);
  expect_type_survives<Eigen::bfloat16>(DType::kBFloat16);
}

TEST(PruneMatrix, IsDeterministic) {
  std::vector<float> ties(64, 1.0F);
  OneLayer net("MatMul", ties, {8, 8});
  net.moments(Eigen::MatrixXd::Ones(8, 8));
  for (const char* criterion : {"2:4", "block:4x1", "wanda_elements", "sparsegpt"}) {
    const auto first = std::get<PrunedMatrix>(net.run(criterion));
    const auto second = std::get<PrunedMatrix>(net.run(criterion));
    EXPECT_EQ(first.mask, second.mask) << criterion;
    EXPECT_EQ(first.values, second.values) << criterion;
    EXPECT_EQ(std::count(first.mask.keep.begin(), first.mask.keep.end(), 0), 32) << criterion;
  }
}

TEST(PruneMatrix, SaysWhyAMatrixKeepsItsElements) {
  OneLayer lookup("Gather", kEight, {4, 2});
  EXPECT_EQ(lookup.refusal("2:4"), "node \"y\" does not multiply with it along one input axis");
  OneLayer narrow("MatMul", kEight, {2, 4});
  EXPECT_EQ(narrow.refusal("2:4"), "its input axis of 2 is shorter than a group of 4");
  EXPECT_EQ(narrow.refusal("sparsegpt"), "what its layer reads was not measured");
  narrow.b.graph.weights[WeightId(0)].dtype = DType::kInt8;
  EXPECT_EQ(narrow.refusal("2:4"), "it is stored as int8");
}

std::string error_of(OneLayer& net, const std::string& criterion, const Statistics* statistics) {
  try {
    net.request.criterion = criterion;
    prune_matrix(net.b.graph, net.task, net.request, {}, statistics);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(PruneMatrix, WantsMomentsThatFit) {
  OneLayer net("MatMul", kEight, {4, 2});
  EXPECT_EQ(error_of(net, "sparsegpt", nullptr),
            "criterion \"sparsegpt\" needs data that runs through the network, and there is none: "
            "give --calibration DATA, for example --calibration cifar10:DIR; in a program, "
            "PruneServices::measure");
  net.moments(Eigen::MatrixXd::Identity(3, 3));
  EXPECT_EQ(error_of(net, "sparsegpt", &net.statistics),
            "tensor \"w\": its layer's input moments are [3, 3], expected [4, 4]");
  net.moments(Eigen::MatrixXd::Constant(4, 4, std::nan("")));
  EXPECT_EQ(error_of(net, "wanda_elements", &net.statistics),
            "tensor \"w\": what its layer reads is not finite: the calibration data or the network "
            "makes NaN or infinity");
}

}  // namespace
}  // namespace parsimony::elements
