// Shapes, layouts and pieces; arithmetic is in evaluate_arithmetic_test.cc.
#include <gtest/gtest.h>

#include "parsimony/base/errors.h"
#include "tests/graph/evaluation.h"

namespace parsimony {
namespace {

using test::Attributes;
using test::Builder;
using test::floats;
using test::ints;
using test::kHighest;
using test::kLowest;
using test::kSix;
using test::list;
using test::many;
using test::one;
using test::run;
using test::run_all;

/// Shape and Size know the shape of what has no known elements.
std::optional<HostTensor> of_shape(const std::string& op, Shape dims, Attributes attributes = {}) {
  Builder b;
  const ValueId x = b.value("x");
  b.add(op, {x}, {b.value("y")}, std::move(attributes));
  Facts facts = test::no_facts(b.graph);
  facts.shapes[ValueId(0)] = std::move(dims);
  const auto results = evaluate(NodeView(b.graph, b.graph.nodes[NodeId(0)], facts));
  return results ? std::optional(results->front()) : std::nullopt;
}

TEST(EvaluateShape, ReadsDimensionsOnly) {
  EXPECT_EQ(of_shape("Shape", {2, 64, 1'000'000}), list({2, 64, 1'000'000}));
  EXPECT_EQ(of_shape("Size", {2, 64, 1'000'000}), HostTensor::scalar(128'000'000));
  EXPECT_EQ(of_shape("Shape", {2, -1}), std::nullopt);
  EXPECT_EQ(of_shape("Shape", {}), list({}));
}

TEST(EvaluateShape, StartAndEndAreClamped) {
  EXPECT_EQ(of_shape("Shape", {2, 3, 4}, {{"start", one(1)}}), list({3, 4}));
  EXPECT_EQ(of_shape("Shape", {2, 3, 4}, {{"start", one(-2)}, {"end", one(-1)}}), list({3}));
  EXPECT_EQ(of_shape("Shape", {2, 3}, {{"start", one(kLowest)}, {"end", one(kHighest)}}),
            list({2, 3}));
  EXPECT_EQ(of_shape("Shape", {2, 3}, {{"start", one(2)}, {"end", one(1)}}), list({}));
}

TEST(EvaluateReshape, ResolvesZeroAndMinusOne) {
  EXPECT_EQ(run("Reshape", {kSix, list({0, -1, 1})})->dims, (Shape{2, 3, 1}));
  EXPECT_EQ(run("Reshape", {kSix, list({-1})})->ints, kSix.ints);
  EXPECT_EQ(run("Reshape", {kSix}, {{"shape", many({3, 2})}})->dims, (Shape{3, 2}));
  EXPECT_EQ(run("Reshape", {HostTensor::scalar(1), list({})})->dims, Shape{});
  EXPECT_EQ(run("Reshape", {ints({0, 4}, {}), list({4, 0})}, {{"allowzero", one(1)}})->dims,
            (Shape{4, 0}));
}

TEST(EvaluateReshape, RefusesOtherCounts) {
  EXPECT_THROW(run("Reshape", {kSix, list({4, 2})}), ModelError);
  EXPECT_THROW(run("Reshape", {kSix, list({4, -1})}), ModelError);
  EXPECT_EQ(run("Reshape", {kSix, list({-1, -1})}), std::nullopt);
  EXPECT_EQ(run("Reshape", {kSix, list({kHighest, 2})}), std::nullopt);
  EXPECT_EQ(run("Reshape", {ints({0, 4}, {}), list({0, -1})}), std::nullopt);
  EXPECT_THROW(run("Reshape", {kSix, floats({1}, {6})}), ModelError);
}

TEST(EvaluateLayout, FlattensAtTheAxis) {
  const HostTensor cube = ints({2, 1, 3}, {0, 1, 2, 3, 4, 5});
  EXPECT_EQ(run("Flatten", {cube})->dims, (Shape{2, 3}));
  EXPECT_EQ(run("Flatten", {cube}, {{"axis", one(0)}})->dims, (Shape{1, 6}));
  EXPECT_EQ(run("Flatten", {cube}, {{"axis", one(3)}})->dims, (Shape{6, 1}));
  EXPECT_EQ(run("Flatten", {cube}, {{"axis", one(-1)}})->dims, (Shape{2, 3}));
  EXPECT_THROW(run("Flatten", {cube}, {{"axis", one(4)}}), ModelError);
}

TEST(EvaluateLayout, SqueezesAndUnsqueezes) {
  const HostTensor ones = ints({1, 3, 1}, {7, 8, 9});
  EXPECT_EQ(run("Squeeze", {ones})->dims, (Shape{3}));
  EXPECT_EQ(run("Squeeze", {ones, list({-1})})->dims, (Shape{1, 3}));
  EXPECT_EQ(run("Squeeze", {ones}, {{"axes", many({0})}})->dims, (Shape{3, 1}));
  EXPECT_THROW(run("Squeeze", {ones, list({1})}), ModelError);
  EXPECT_EQ(run("Unsqueeze", {list({7, 8}), list({0, -1})})->dims, (Shape{1, 2, 1}));
  EXPECT_EQ(run("Unsqueeze", {HostTensor::scalar(5)}, {{"axes", many({0})}}), list({5}));
  EXPECT_THROW(run("Unsqueeze", {list({7}), list({0, 0})}), ModelError);
  EXPECT_THROW(run("Unsqueeze", {list({7}), list({3})}), ModelError);
  EXPECT_EQ(run("Unsqueeze", {list({7})}), std::nullopt);
}

TEST(EvaluateLayout, Transposes) {
  EXPECT_EQ(run("Transpose", {kSix}), ints({3, 2}, {0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(run("Transpose", {kSix}, {{"perm", many({0, 1})}}), kSix);
  EXPECT_THROW(run("Transpose", {kSix}, {{"perm", many({0, 0})}}), ModelError);
  EXPECT_THROW(run("Transpose", {kSix}, {{"perm", many({0})}}), ModelError);
}

TEST(EvaluateLayout, ExpandsBothWaysAndTiles) {
  EXPECT_EQ(run("Expand", {ints({2, 1}, {1, 2}), list({3})}), ints({2, 3}, {1, 1, 1, 2, 2, 2}));
  EXPECT_EQ(run("Expand", {kSix, list({1})}), kSix);
  EXPECT_THROW(run("Expand", {kSix, list({4})}), ModelError);
  EXPECT_EQ(run("Expand", {HostTensor::scalar(1), list({kHighest})}), std::nullopt);
  EXPECT_EQ(run("Expand", {HostTensor::scalar(1), list({60'000, 60'000})}), std::nullopt);
  EXPECT_EQ(run("Tile", {ints({1, 2}, {1, 2}), list({2, 2})}),
            ints({2, 4}, {1, 2, 1, 2, 1, 2, 1, 2}));
  EXPECT_EQ(run("Tile", {list({1, 2}), list({0})}), list({}));
  EXPECT_EQ(run("Tile", {list({1, 2}), list({60'000})}), std::nullopt);
  EXPECT_THROW(run("Tile", {list({1, 2}), list({1, 1})}), ModelError);
}

TEST(EvaluatePieces, Concatenates) {
  EXPECT_EQ(run("Concat", {list({1}), list({2, 3})}, {{"axis", one(0)}}), list({1, 2, 3}));
  EXPECT_EQ(run("Concat", {kSix, ints({2, 1}, {8, 9})}, {{"axis", one(-1)}}),
            ints({2, 4}, {0, 1, 2, 8, 3, 4, 5, 9}));
  EXPECT_EQ(run("Concat", {floats({1}, {0.5}), floats({1}, {2})}, {{"axis", one(0)}}),
            floats({2}, {0.5, 2}));
  EXPECT_THROW(run("Concat", {kSix, list({1})}, {{"axis", one(0)}}), ModelError);
  EXPECT_THROW(run("Concat", {HostTensor::scalar(1)}, {{"axis", one(0)}}), ModelError);
  EXPECT_EQ(run("Concat", {list({1}), std::nullopt}, {{"axis", one(0)}}), std::nullopt);
  EXPECT_THROW(run("Concat", {list({1}), kSix, std::nullopt}, {{"axis", one(0)}}), ModelError);
}

TEST(EvaluatePieces, SlicesLikeNumpy) {
  const HostTensor five = list({0, 1, 2, 3, 4});
  EXPECT_EQ(run("Slice", {five, list({1}), list({-1})}), list({1, 2, 3}));
  EXPECT_EQ(run("Slice", {five, list({-2}), list({kHighest})}), list({3, 4}));
  EXPECT_EQ(run("Slice", {five, list({0}), list({5}), list({0}), list({2})}), list({0, 2, 4}));
  EXPECT_EQ(run("Slice", {five, list({-1}), list({kLowest}), list({-1}), list({-1})}),
            list({4, 3, 2, 1, 0}));
  EXPECT_EQ(run("Slice", {five, list({3}), list({0}), list({0}), list({-2})}), list({3, 1}));
  EXPECT_EQ(run("Slice", {five, list({4}), list({1})}), list({}));
  EXPECT_EQ(run("Slice", {five, list({9}), list({20})}), list({}));
  EXPECT_EQ(run("Slice", {five, list({1}), list({5}), list({0}), list({kHighest})}), list({1}));
  EXPECT_EQ(run("Slice", {five, list({3}), list({kLowest}), list({0}), list({kLowest})}),
            list({3}));
  EXPECT_EQ(run("Slice", {list({}), list({-1}), list({kLowest}), list({0}), list({-1})}), list({}));
}

TEST(EvaluatePieces, SlicesNamedAxesAndOldAttributes) {
  EXPECT_EQ(run("Slice", {kSix, list({1}), list({3}), list({-1})}), ints({2, 2}, {1, 2, 4, 5}));
  EXPECT_EQ(run("Slice", {kSix}, {{"starts", many({1})}, {"ends", many({2})}}),
            ints({1, 3}, {3, 4, 5}));
  EXPECT_EQ(run("Slice", {kSix, list({0}), list({1}), std::nullopt, list({1})}),
            ints({1, 3}, {0, 1, 2}));
  EXPECT_THROW(run("Slice", {kSix, list({0, 0}), list({1})}), ModelError);
  EXPECT_THROW(run("Slice", {kSix, list({0, 0, 0}), list({1, 1, 1})}), ModelError);
  EXPECT_THROW(run("Slice", {kSix, list({0}), list({1}), list({0}), list({0})}), ModelError);
  EXPECT_THROW(run("Slice", {kSix, list({0}), list({1}), list({2})}), ModelError);
  EXPECT_EQ(run("Slice", {kSix}), std::nullopt);
}

TEST(EvaluatePieces, Splits) {
  const HostTensor five = list({0, 1, 2, 3, 4});
  const auto parts = run_all("Split", {five, list({2, 3})}, {}, 2);
  EXPECT_EQ(parts, (std::vector<HostTensor>{list({0, 1}), list({2, 3, 4})}));
  const auto columns = run_all("Split", {kSix}, {{"axis", one(1)}}, 3);
  ASSERT_TRUE(columns.has_value());
  EXPECT_EQ((*columns)[1], ints({2, 1}, {1, 4}));
  const auto unequal = run_all("Split", {five}, {{"num_outputs", one(2)}}, 2);
  EXPECT_EQ(unequal, (std::vector<HostTensor>{list({0, 1, 2}), list({3, 4})}));
  EXPECT_THROW(run_all("Split", {five}, {}, 2), ModelError);
  EXPECT_THROW(run_all("Split", {five, list({2, 2})}, {}, 2), ModelError);
  EXPECT_THROW(run_all("Split", {five, list({7, -2})}, {}, 2), ModelError);
  EXPECT_THROW(run_all("Split", {five, list({2, 3})}, {}, 3), ModelError);
}

TEST(EvaluateIndex, Gathers) {
  EXPECT_EQ(run("Gather", {list({5, 6, 7}), HostTensor::scalar(-1)}), HostTensor::scalar(7));
  EXPECT_EQ(run("Gather", {kSix, list({2, 0})}, {{"axis", one(1)}}), ints({2, 2}, {2, 0, 5, 3}));
  EXPECT_EQ(run("Gather", {kSix, ints({1, 1}, {1})}), ints({1, 1, 3}, {3, 4, 5}));
  EXPECT_EQ(run("Gather", {list({5}), list({1})}), std::nullopt);
  EXPECT_EQ(run("Gather", {list({5}), list({kLowest})}), std::nullopt);
  EXPECT_THROW(run("Gather", {HostTensor::scalar(1), list({0})}), ModelError);
}

TEST(EvaluateIndex, GathersAndScattersElements) {
  EXPECT_EQ(run("GatherElements", {kSix, ints({1, 3}, {1, 0, -1})}), ints({1, 3}, {3, 1, 5}));
  EXPECT_THROW(run("GatherElements", {kSix, ints({1, 4}, {0, 0, 0, 0})}), ModelError);
  EXPECT_EQ(run("ScatterElements", {list({1, 2, 3}), list({2, 0}), list({9, 8})}), list({8, 2, 9}));
  EXPECT_THROW(run("ScatterElements", {list({1, 2}), list({0}), list({9, 8})}), ModelError);
  EXPECT_EQ(run("ScatterElements", {list({1}), list({0}), list({9})},
                {{"reduction", std::string("add")}}),
            std::nullopt);
}

TEST(EvaluateIndex, ScattersTuples) {
  EXPECT_EQ(run("ScatterND", {kSix, ints({1, 1}, {1}), ints({1, 3}, {7, 8, 9})}),
            ints({2, 3}, {0, 1, 2, 7, 8, 9}));
  EXPECT_EQ(run("ScatterND", {kSix, ints({2, 2}, {0, 0, -1, -1}), list({7, 8})}),
            ints({2, 3}, {7, 1, 2, 3, 4, 8}));
  EXPECT_THROW(run("ScatterND", {kSix, ints({1, 3}, {0, 0, 0}), list({7})}), ModelError);
  EXPECT_THROW(run("ScatterND", {kSix, ints({1, 1}, {0}), list({7})}), ModelError);
  EXPECT_EQ(run("ScatterND", {list({1}), ints({1, 1}, {1}), list({7})}), std::nullopt);
}

TEST(EvaluateIndex, FindsWhatIsNotZero) {
  EXPECT_EQ(run("NonZero", {kSix}), ints({2, 5}, {0, 0, 1, 1, 1, 1, 2, 0, 1, 2}));
  EXPECT_EQ(run("NonZero", {HostTensor::scalar(3)}), ints({1, 1}, {0}));
  EXPECT_EQ(run("NonZero", {list({0})}), ints({1, 0}, {}));
}

TEST(EvaluateCreate, ConstantOfShape) {
  EXPECT_EQ(run("ConstantOfShape", {list({2})}), floats({2}, {0, 0}));
  EXPECT_EQ(run("ConstantOfShape", {list({2, 1})}, {{"value", many({-3})}}),
            ints({2, 1}, {-3, -3}));
  EXPECT_EQ(run("ConstantOfShape", {list({})}, {{"value", std::vector<double>{0.5}}}),
            floats({}, {0.5}));
  EXPECT_EQ(run("ConstantOfShape", {list({-1})}), std::nullopt);
  EXPECT_EQ(run("ConstantOfShape", {list({kHighest, kHighest})}), std::nullopt);
  EXPECT_EQ(run("ConstantOfShape", {list({1})}, {{"value", many({1, 2})}}), std::nullopt);
}

TEST(EvaluateCreate, Ranges) {
  const auto range = [](int64_t start, int64_t limit, int64_t delta) {
    return run("Range",
               {HostTensor::scalar(start), HostTensor::scalar(limit), HostTensor::scalar(delta)});
  };
  EXPECT_EQ(range(1, 8, 3), list({1, 4, 7}));
  EXPECT_EQ(range(3, 0, -1), list({3, 2, 1}));
  EXPECT_EQ(range(3, 0, 1), list({}));
  EXPECT_EQ(range(0, 3, 0), std::nullopt);
  EXPECT_EQ(range(0, kHighest, 1), std::nullopt);
  EXPECT_EQ(range(kLowest, kHighest, kHighest), list({kLowest, -1, kHighest - 1}));
  EXPECT_EQ(range(kHighest, kLowest, kLowest), list({kHighest, -1}));
  EXPECT_EQ(run("Range", {floats({}, {0}), floats({}, {1}), floats({}, {0.25})}),
            floats({4}, {0, 0.25, 0.5, 0.75}));
  EXPECT_EQ(run("Range", {floats({}, {0}), floats({}, {1}), floats({}, {0})}), std::nullopt);
}

TEST(Evaluate, KnowsOnlyItsOwnOperators) {
  EXPECT_EQ(run("Conv", {kSix, kSix}), std::nullopt);
  EXPECT_EQ(run("", {kSix}), std::nullopt);
  EXPECT_EQ(run("Add", {kSix}), std::nullopt);
  EXPECT_EQ(run("Add", {kSix, std::nullopt}), std::nullopt);
}

TEST(Evaluate, RefusesWhatIsTooLarge) {
  const HostTensor large = ints({65'537}, std::vector<int64_t>(65'537, 1));
  EXPECT_EQ(run("Identity", {large}), std::nullopt);
  const HostTensor edge = ints({65'536}, std::vector<int64_t>(65'536, 1));
  EXPECT_EQ(run("Identity", {edge}), edge);
  EXPECT_EQ(run("Add", {edge, ints({2, 1}, {1, 2})}), std::nullopt);
  const HostTensor nothing = ints({60'000, 0, 60'000}, {});
  EXPECT_EQ(run("Identity", {nothing}), std::nullopt);
}

TEST(Evaluate, RefusesElementsThatDoNotFillTheShape) {
  EXPECT_EQ(run("Identity", {ints({3}, {1, 2})}), std::nullopt);
}

}  // namespace
}  // namespace parsimony
