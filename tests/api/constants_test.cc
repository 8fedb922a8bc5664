// The arithmetic of folded constants, by hand.
#include "parsimony/speedup/constants.h"

#include <gtest/gtest.h>

#include <cstring>

#include "parsimony/api/prune.h"
#include "parsimony/base/errors.h"
#include "parsimony/base/files.h"
#include "parsimony/onnx_io/model_file.h"
#include "parsimony/onnx_io/reader.h"
#include "tests/support/fixture.h"

namespace parsimony::test {
namespace {

std::vector<float> floats_of(const TensorUpdate& update) {
  std::vector<float> values(update.values.size() / sizeof(float));
  std::memcpy(values.data(), update.values.data(), update.values.size());
  return values;
}

/// x[1,2] → Gemm(W1, b1) → Sigmoid → Gemm or MatMul (W2, b2), 3 inner channels.
Pruning planned(const std::string& last, const std::vector<ElementMask>& masks,
                const Observe& observe) {
  const std::string text =
      "net (float[1,2] x) => (float[1,2] y)\n"
      "<float[2,3] W1 = {1,2,3,4,5,6}, float[3] b1 = {7,8,9}, float[3,2] W2 = {1,2,3,4,5,6},"
      " float[2] b2 = {10,20}>\n{ a = Gemm(x, W1, b1)\n s = Sigmoid(a)\n y = " +
      last + " }";
  const TemporaryFolder folder;
  write_file(folder / "model.onnx", model_of(text).SerializeAsString());
  const onnx_io::ModelFile file(folder / "model.onnx");
  Graph graph = onnx_io::to_graph(file);
  PruneRequest request;
  PruneServices services;
  request.constants = Constants::kExact;
  request.masks = masks;
  services.observe = observe;
  return plan_pruning(graph, request, services);
}

const ElementMask kColumns = {"W1", {2, 3}, {0, 1, 0, 0, 1, 0}};  // channels 0 and 2

/// What a run would find: -1 is not uniform.
Observe finds(const std::vector<double>& values) {
  return [values](const Graph&, const Probe&, const std::vector<ElementMask>&,
                  const std::vector<Dimension>& dimensions) {
    EXPECT_EQ(dimensions.size(), 1U);
    std::vector<IndexContent> contents;
    for (const double value : values) contents.push_back({value, value >= 0});
    return std::vector<std::vector<IndexContent>>{contents};
  };
}

TEST(Constants, AddUpInTheBias) {
  const Pruning pruning =
      planned("Gemm<alpha=2.0, beta=4.0>(s, W2, b2)", {kColumns}, finds({0.5, -1, 0.25}));
  EXPECT_EQ(pruning.allocation.masks.keep[GroupId(0)], (std::vector<uint8_t>{0, 1, 0}));
  const Plan& plan = pruning.plan;
  ASSERT_EQ(plan.updates.size(), 1U);
  EXPECT_EQ(plan.updates[0].tensor, "b2");
  // alpha / beta * (0.5 * {1, 2} + 0.25 * {5, 6}) = {0.875, 1.25}
  EXPECT_EQ(floats_of(plan.updates[0]), (std::vector<float>{10.875F, 21.25F}));
  EXPECT_EQ(plan.updates[0].dims, Shape{2});
  ASSERT_EQ(plan.masks.size(), 1U);
  EXPECT_EQ(plan.masks[0].keep, kColumns.keep);
  ASSERT_EQ(pruning.masked.size(), 1U);
  EXPECT_EQ(pruning.masked[0].zeros, 4);
  EXPECT_EQ(pruning.masked[0].removed, 4);
}

TEST(Constants, AreCarriedByTheLargest) {
  const Pruning pruning = planned("MatMul(s, W2)", {kColumns}, finds({0.5, -1, 0.25}));
  EXPECT_EQ(pruning.allocation.masks.keep[GroupId(0)], (std::vector<uint8_t>{1, 1, 0}));
  EXPECT_EQ(pruning.absorbers, 1);
  // The absorbing channel's row 0: {1, 2} + 0.25 / 0.5 * {5, 6}; its own weights in W1 are zero.
  ASSERT_EQ(pruning.plan.updates.size(), 2U);
  EXPECT_EQ(pruning.plan.updates[0].tensor, "W1");
  EXPECT_EQ(floats_of(pruning.plan.updates[0]), (std::vector<float>{0, 2, 0, 5}));
  EXPECT_EQ(pruning.plan.updates[1].tensor, "W2");
  EXPECT_EQ(floats_of(pruning.plan.updates[1]), (std::vector<float>{3.5F, 5, 3, 4}));
  EXPECT_EQ(pruning.masked[0].removed, 2);
}

TEST(Constants, ThatDifferFromPlaceToPlaceStay) {
  const Pruning pruning = planned("Gemm(s, W2, b2)", {kColumns}, finds({-1, -1, 0.25}));
  EXPECT_EQ(pruning.allocation.masks.keep[GroupId(0)], (std::vector<uint8_t>{1, 1, 0}));
  ASSERT_EQ(pruning.notes.size(), 1U);
  EXPECT_EQ(
      pruning.notes[0],
      "group g0: 1 channel is kept, zero in the weights: what is left varies by position at y");
}

TEST(Constants, ThatNobodyLooksAtStay) {
  const Pruning pruning = planned("Gemm(s, W2, b2)", {kColumns}, {});
  EXPECT_EQ(pruning.allocation.masks.kept(GroupId(0)), 3);
  EXPECT_EQ(pruning.plan.updates.size(), 1U);  // W1's zeros
}

TEST(Constants, ChannelsThatNobodyReadsGoWhateverTheyHold) {
  const ElementMask row = {"W2", {3, 2}, {1, 1, 0, 0, 1, 1}};
  const Pruning pruning = planned("Gemm(s, W2, b2)", {row}, {});
  EXPECT_EQ(pruning.allocation.masks.keep[GroupId(0)], (std::vector<uint8_t>{1, 0, 1}));
  EXPECT_TRUE(pruning.plan.updates.empty());
}

TEST(Constants, PartsOfAMaskThatTakeNoWholeChannelStayAsZeros) {
  const ElementMask some = {"W1", {2, 3}, {0, 1, 1, 1, 1, 1}};
  const Pruning pruning = planned("Gemm(s, W2, b2)", {some}, {});
  EXPECT_EQ(pruning.allocation.masks.kept(GroupId(0)), 3);
  ASSERT_EQ(pruning.plan.updates.size(), 1U);
  EXPECT_EQ(floats_of(pruning.plan.updates[0]), (std::vector<float>{0, 2, 3, 4, 5, 6}));
  EXPECT_EQ(pruning.plan.updates[0].reason, "elements that the mask removes are zero");
}

TEST(Constants, MasksThatDoNotFitAreRefused) {
  const auto complaint = [](const ElementMask& mask) -> std::string {
    try {
      planned("Gemm(s, W2, b2)", {mask}, {});
    } catch (const ModelError& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_EQ(complaint({"W1", {3, 2}, {0, 1, 1, 1, 1, 1}}),
            "the mask of tensor \"W1\" has shape [3, 2], the tensor [2, 3]");
  EXPECT_EQ(complaint({"V1", {2, 3}, {0, 1, 1, 1, 1, 1}}),
            "the masks name tensor \"V1\", which the model does not have. Did you mean \"W1\" or "
            "\"b1\"?");
}

}  // namespace
}  // namespace parsimony::test
