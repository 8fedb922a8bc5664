#include "parsimony/base/errors.h"

#include <gtest/gtest.h>

namespace parsimony {
namespace {

std::string suggest(std::string_view requested, const std::vector<std::string>& candidates) {
  return did_you_mean(requested, candidates);
}

TEST(DidYouMean, PrefersTheSameLettersInAnotherCase) {
  EXPECT_EQ(suggest("Conv2D", {"Conv1d", "Conv2d", "Conv3d"}), " Did you mean \"Conv2d\"?");
}

TEST(DidYouMean, CountsASwapOfNeighboursOnce) {
  EXPECT_EQ(suggest("Lniear", {"Bilinear", "Linear"}), " Did you mean \"Linear\"?");
}

TEST(DidYouMean, FindsMissingAndSuperfluousLetters) {
  EXPECT_EQ(suggest("sparsty", {"sparsity", "density"}), " Did you mean \"sparsity\"?");
  EXPECT_EQ(suggest("oop_types", {"op_names", "op_types"}), " Did you mean \"op_types\"?");
}

TEST(DidYouMean, FallsBackToPrefixesThenFragments) {
  EXPECT_EQ(suggest("layer1", {"net.layer1.conv", "layer1.conv.weight"}),
            " Did you mean \"layer1.conv.weight\"?");
  EXPECT_EQ(suggest("conv", {"layer1.conv.weight", "head.bias"}),
            " Did you mean \"layer1.conv.weight\"?");
  EXPECT_EQ(suggest("model.conv1.weight", {"conv1.weight"}), " Did you mean \"conv1.weight\"?");
}

TEST(DidYouMean, NamesAtMostThreeEquallyNear) {
  EXPECT_EQ(suggest("convA", {"conv1", "conv2"}), " Did you mean \"conv1\" or \"conv2\"?");
  EXPECT_EQ(suggest("convA", {"conv1", "conv2", "conv2", "conv3", "conv4"}),
            " Did you mean \"conv1\", \"conv2\" or \"conv3\"?");
}

TEST(DidYouMean, IsSilentWhereNothingIsNear) {
  EXPECT_EQ(suggest("Conv2d", {"LSTM", "Softmax"}), "");
  EXPECT_EQ(suggest("x", {"y"}), "");
  EXPECT_EQ(suggest("", {"y", ""}), "");
  EXPECT_EQ(suggest("Conv2d", {}), "");
}

TEST(DidYouMean, TakesNamesOfAnyLength) {
  const std::string endless(1 << 20, 'a');
  EXPECT_EQ(suggest(endless, {std::string(1 << 20, 'b')}), "");
}

TEST(Errors, TakeTheirTextInPieces) {
  const std::string name = "w";
  const std::string_view type = "float";
  const ModelError error("tensor ", in_quotes(name), " of ", type, ": ", int64_t{-1}, '/',
                         size_t{2});
  EXPECT_STREQ(error.what(), "tensor \"w\" of float: -1/2");
  EXPECT_STREQ(Error(error).what(), error.what());
  EXPECT_EQ(ShapeError(NodeId(3), "axis ", 1).node(), NodeId(3));
}

TEST(Errors, ABadDimensionMayBelongToNoTensor) {
  EXPECT_EQ(std::string(errors::bad_dimension("w", "[-1]").what()).rfind("tensor \"w\": ", 0), 0u);
  EXPECT_EQ(std::string(errors::bad_dimension("", "[-1]").what()).rfind("wrong dims [-1]", 0), 0u);
}

}  // namespace
}  // namespace parsimony
