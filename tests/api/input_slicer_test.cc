// What a network and its small one read and answer where a plan cuts inputs and outputs.
#include <gtest/gtest.h>

#include "parsimony/api/reference.h"
#include "parsimony/base/errors.h"
#include "tests/graph/builder.h"
#include "tests/support/arrays.h"

namespace parsimony::test {
namespace {

class Fed : public testing::Test {
 protected:
  Fed() {
    net_.input("x", {1, 2});
    const auto state = net_.input("state", {2, 3});
    net_.output(net_.node("Relu", {state}, "y"));
    net_.output(net_.node("Relu", {state}, "next"));
    finish(net_.graph);
    plan_.ends = {{"state", true, 1, 3, {0, 2}}, {"next", false, 1, 3, {0, 2}}};
    plan_.states = {{"next", "state"}};
  }

  Builder net_;
  Plan plan_;
};

TEST_F(Fed, MasksAndCutsInputs) {
  const InputSlicer feed(net_.graph, plan_);
  TensorList inputs = {tensor("x", {1, 2}, {1, 2}), tensor("state", {2, 3}, {1, 2, 3, 4, 5, 6})};
  feed.mask(inputs);
  EXPECT_EQ(elements<float>(inputs[0]), (std::vector<float>{1, 2}));
  EXPECT_EQ(elements<float>(inputs[1]), (std::vector<float>{1, 0, 3, 4, 0, 6}));
  const TensorList small = feed.small_inputs(inputs);
  EXPECT_EQ(small[1].dims, (Shape{2, 2}));
  EXPECT_EQ(elements<float>(small[1]), (std::vector<float>{1, 3, 4, 6}));
}

TEST_F(Fed, CutsOutputs) {
  const TensorBytes whole = tensor("", {2, 3}, {1, 2, 3, 4, 5, 6});
  const TensorList small = InputSlicer(net_.graph, plan_).small_outputs({whole, whole});
  EXPECT_EQ(small[0].dims, (Shape{2, 3}));
  EXPECT_EQ(elements<float>(small[1]), (std::vector<float>{1, 3, 4, 6}));
}

TEST_F(Fed, FeedsBackTheEndOfWhatGrew) {
  const InputSlicer feed(net_.graph, plan_);
  ASSERT_TRUE(feed.has_states());
  TensorList inputs = {tensor("x", {1, 2}, {1, 2}), tensor("state", {2, 3}, {0, 0, 0, 0, 0, 0})};
  feed.feed_back({tensor("", {1}, {9}), tensor("", {3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9})}, inputs);
  EXPECT_EQ(inputs[1].name, "state");
  EXPECT_EQ(inputs[1].dims, (Shape{2, 3}));
  EXPECT_EQ(elements<float>(inputs[1]), (std::vector<float>{4, 5, 6, 7, 8, 9}));
  EXPECT_EQ(elements<float>(inputs[0]), (std::vector<float>{1, 2}));
}

TEST_F(Fed, RefusesThePlanOfAnotherNetwork) {
  plan_.states = {{"gone", "state"}};
  EXPECT_THROW(InputSlicer(net_.graph, plan_), ModelError);
}

}  // namespace
}  // namespace parsimony::test
