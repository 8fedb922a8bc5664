#include "parsimony/graph/infer.h"

#include <gtest/gtest.h>

#include "parsimony/base/errors.h"
#include "parsimony/graph/growing_facts.h"
#include "parsimony/graph/operators/node_view.h"
#include "tests/graph/builder.h"

namespace parsimony {
namespace {

using test::Builder;

const std::optional<Shape>& shape(const Facts& facts, ValueId id) { return facts.shapes[id]; }

ValueId integers(Builder& builder, const std::string& name, const std::vector<int64_t>& values) {
  return builder.weight(name, values, {static_cast<int64_t>(values.size())}, DType::kInt64);
}

TEST(Infer, FollowsLinesAndIrregularRules) {
  Builder b;
  const ValueId x = b.input("x", {2, 3, 8, 8});
  const ValueId c =
      b.node("Conv", {x, b.floats("w", {8, 3, 3, 3})}, "c",
             {{"pads", std::vector<int64_t>{1, 1, 1, 1}}, {"strides", std::vector<int64_t>{2, 2}}});
  const ValueId f = b.node("Flatten", {c}, "f");
  const ValueId y = b.node("MatMul", {f, b.floats("v", {128, 5})}, "y");
  b.output(y);
  finish(b.graph);
  const Facts facts = infer(b.graph);
  EXPECT_EQ(shape(facts, c), (Shape{2, 8, 4, 4}));
  EXPECT_EQ(shape(facts, f), (Shape{2, 128}));
  EXPECT_EQ(shape(facts, y), (Shape{2, 5}));
}

TEST(Infer, EvaluatesShapesAndWhatIsMadeOfThem) {
  Builder b;
  const ValueId x = b.input("x", {2, 3, 4});
  const ValueId s = b.node("Shape", {x}, "s");
  const ValueId n = b.node("Gather", {s, integers(b, "zero", {0})}, "n");
  const ValueId t = b.node("Concat", {n, integers(b, "rest", {-1})}, "t", {{"axis", int64_t{0}}});
  const ValueId y = b.node("Reshape", {x, t}, "y");
  b.output(y);
  finish(b.graph);
  const Facts facts = infer(b.graph);
  EXPECT_EQ(shape(facts, y), (Shape{2, 12}));
  EXPECT_TRUE(facts.computed[t]);
  EXPECT_EQ(facts.constants[t]->ints, (std::vector<int64_t>{2, -1}));
  EXPECT_FALSE(facts.computed[y]);
}

TEST(Infer, ReevaluatesForOtherShapes) {
  Builder b;
  const ValueId x = b.input("x", {2, 3});
  const ValueId s = b.node("Shape", {x}, "s");
  b.output(b.node("Expand", {b.floats("w", {1, 1}), s}, "y"));
  finish(b.graph);
  const Facts facts = infer(b.graph);
  auto shapes = facts.shapes;
  shapes[x] = Shape{2, 2};
  const auto constants = reevaluate(b.graph, facts, shapes);
  EXPECT_EQ(constants[s]->ints, (std::vector<int64_t>{2, 2}));
}

TEST(Infer, ProbesWhatTheFileLeavesOpen) {
  Builder b;
  const ValueId x = b.input("x", {-1, 3, -1, -1});
  b.graph.value(x).symbols = {"N", "", "H", "H"};
  b.output(b.node("Relu", {x}, "y"));
  finish(b.graph);
  EXPECT_EQ(shape(infer(b.graph, {{}, 5, 7}), x), (Shape{5, 3, 7, 7}));
  const Probe given{{parse_input_spec("1x3x9x9")}, 2, 32};
  EXPECT_EQ(shape(infer(b.graph, given), x), (Shape{1, 3, 9, 9}));
}

/// A network whose sizes must be a multiple of 224 is still found out about.
TEST(Infer, ChoosesSizesThatTheNetworkTakes) {
  Builder b;
  const ValueId x = b.input("x", {1, 3, -1, -1});
  b.graph.value(x).symbols = {"", "", "H", "W"};
  const ValueId f = b.node("Flatten", {x}, "f");
  b.output(b.node("MatMul", {f, b.floats("w", {3 * 64 * 64, 2})}, "y"));
  finish(b.graph);
  const Probe probe = choose_probe(b.graph);
  EXPECT_EQ(probe.other, 64);
  EXPECT_EQ(shape(infer(b.graph, probe), x), (Shape{1, 3, 64, 64}));
}

TEST(Infer, LeavesUnknownWhatItCannotTell) {
  Builder b;
  const ValueId x = b.input("x", {2, 3});
  const ValueId y = b.node("Mystery", {x}, "y");
  const ValueId z = b.node("Relu", {y}, "z");
  b.output(z);
  finish(b.graph);
  const Facts facts = infer(b.graph);
  EXPECT_FALSE(shape(facts, y));
  EXPECT_FALSE(shape(facts, z));
}

TEST(Infer, RefusesOperandsThatContradictEachOther) {
  Builder b;
  const ValueId x = b.input("x", {2, 3});
  b.output(b.node("Add", {x, b.floats("w", {2, 5})}, "sum"));
  finish(b.graph);
  EXPECT_THROW(infer(b.graph), ModelError);
}

TEST(Infer, FollowsNoMoreDimensionsThanTensorsHave) {
  for (const size_t dims : {64, 65}) {
    Builder b;
    const ValueId x = b.input("x", {1});
    const ValueId sizes = integers(b, "sizes", std::vector<int64_t>(dims, 1));
    const ValueId y = b.node("Expand", {x, sizes}, "y");
    b.output(y);
    finish(b.graph);
    EXPECT_EQ(shape(infer(b.graph), y).has_value(), dims == 64);
  }
}

TEST(Infer, RefusesSizesBeyondReason) {
  Builder b;
  const ValueId x = b.input("x", {int64_t{1} << 40, int64_t{1} << 40});
  b.output(b.node("Relu", {x}, "y"));
  finish(b.graph);
  EXPECT_THROW(infer(b.graph), ModelError);
}

/// Counts the nodes that the operator table does not know.
class Counting final : public GraphSource {
 public:
  std::vector<std::optional<Shape>> infer(const NodeView& node) const override {
    ++visits;
    return {*node.in_shape(0)};
  }
  mutable int visits = 0;
};

TEST(GrowingFacts, VisitEveryNodeOnce) {
  Builder b;
  const auto source = std::make_shared<Counting>();
  b.graph.source = source;
  Probe probe;
  GrowingFacts facts(b.graph, probe);
  ValueId x = b.input("x", {2, 3});
  for (int i = 1; i <= 10; ++i) {
    x = b.node("Mystery", {x}, "y" + std::to_string(i));
    EXPECT_EQ(shape(facts.now(), x), (Shape{2, 3}));
    EXPECT_EQ(source->visits, i);
  }
}

TEST(GrowingFacts, ForgetWhatIsRemoved) {
  Builder b;
  Probe probe;
  GrowingFacts facts(b.graph, probe);
  const ValueId x = b.input("x", {2, 3});
  const ValueId y = b.node("Relu", {x}, "y");
  b.node("Transpose", {y}, "z");
  EXPECT_EQ(facts.now().shapes.size(), 3U);
  const NodeId last = b.graph.nodes.last_id();
  const ValueId z = b.graph.values.last_id();
  facts.forget(last, z);
  b.graph.nodes.pop_back();
  b.graph.values.pop_back();
  EXPECT_EQ(facts.now().shapes.size(), 2U);
  EXPECT_EQ(b.node("Flatten", {y}, "f"), z);
  EXPECT_EQ(shape(facts.now(), z), (Shape{2, 3}));
}

/// A loop is added behind the nodes of its body, which have been asked about before.
TEST(GrowingFacts, AreThoseOfInferForBodiesThatFindTheirOwner) {
  Builder b;
  Probe probe;
  GrowingFacts facts(b.graph, probe);
  const ValueId x = b.input("x", {2, 3});
  const ValueId turns = b.weight("turns", std::vector<int64_t>{4}, {}, DType::kInt64);
  const NodeId first = b.graph.nodes.next_id();
  const ValueId turn = b.value("turn");
  const ValueId goes_on = b.value("goes_on");
  const ValueId state = b.value("state");
  const ValueId wider = b.node("Concat", {state, state}, "wider", {{"axis", int64_t{1}}});
  const BodyId body = b.graph.bodies.next_id();
  b.graph.bodies.push_back({.attribute = "body",
                            .around = kNone,
                            .inputs = {turn, goes_on, state},
                            .outputs = {goes_on, wider},
                            .owner = kNone});
  b.graph.nodes.back().body = body;
  EXPECT_FALSE(shape(facts.now(), wider));
  const ValueId y = b.node("Loop", {turns, kNone, x}, "y");
  b.graph.nodes.back().bodies = {body};
  b.graph.bodies[body].owner = b.graph.nodes.last_id();
  facts.forget(first, turn);
  for (const ValueId v : {state, wider, y}) {
    EXPECT_EQ(shape(facts.now(), v), shape(infer(b.graph, probe), v));
  }
  EXPECT_EQ(shape(facts.now(), state), (Shape{2, 3}));
}

TEST(InputSpec, ReadsEveryForm) {
  EXPECT_EQ(parse_input_spec("1x3x32x32").dims, (Shape{1, 3, 32, 32}));
  EXPECT_EQ(parse_input_spec("2x8:int64").dims, (Shape{2, 8}));
  const InputSpec scalar = parse_input_spec(":int64=16000");
  EXPECT_TRUE(scalar.dims.empty());
  EXPECT_EQ(scalar.value, 16000);
  EXPECT_EQ(parse_input_spec(":float32=-0.5").value, -0.5);
  EXPECT_EQ(to_text(parse_input_spec(":float32=-0.5")), ":float32=-0.5");
  EXPECT_EQ(to_text(scalar), ":int64=16000");
}

TEST(InputSpec, RefusesWhatIsNone) {
  for (const char* text : {"1x", "x3", "0x3", "-1x3", "1,3", "axb", "1x3:int64=many"}) {
    EXPECT_THROW(parse_input_spec(text), ConfigError) << text;
  }
}

}  // namespace
}  // namespace parsimony
