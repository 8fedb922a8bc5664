#include "tests/support/dump.h"

#include <gtest/gtest.h>

#include "tests/graph/builder.h"

namespace parsimony {
namespace {

using test::Builder;

TEST(Dump, ShowsOneNodePerLine) {
  Builder b;
  const ValueId x = b.input("x", {-1, 3, 8, -1});
  b.graph.value(x).symbols = {"batch", "", "", ""};
  const ValueId w = b.floats("conv1.weight", {64, 3, 3, 3});
  const ValueId renamed = b.floats("conv1.bias", {64});
  b.graph.value(renamed).name = "bias";
  const ValueId y = b.node("Conv", {x, w, renamed}, "y", {{"group", int64_t{1}}});
  b.graph.nodes[NodeId(0)].name = "Conv_3";
  b.output(y);
  finish(b.graph);
  EXPECT_EQ(dump(b.graph),
            "input x[batch, 3, 8, ?] float32\n"
            "Conv_3: y[?] = Conv(x[batch, 3, 8, ?], conv1.weight{}[64, 3, 3, 3], "
            "bias{conv1.bias}[64]) group=1\n"
            "output y[?] unknown\n");
}

TEST(Dump, FactsComeBeforeTheFile) {
  Builder b;
  const ValueId x = b.input("x", {-1, 3});
  const ValueId s = b.node("Shape", {x}, "s");
  finish(b.graph);
  Facts facts = test::no_facts(b.graph);
  facts.shapes[x] = Shape{2, 3};
  facts.shapes[s] = Shape{2};
  facts.constants[s] = HostTensor::vector({2, 3});
  EXPECT_EQ(dump(b.graph, &facts),
            "input x[2, 3] float32\n"
            "s: s[2]<2, 3> = Shape(x[2, 3])\n");
}

TEST(Dump, PrintsEveryKindOfAttribute) {
  Builder b;
  const ValueId x = b.input("x", {2});
  b.node("Odd", {x, kNone, x}, "y",
         {{"i", int64_t{-1}},
          {"f", 0.1},
          {"s", std::string("a\"b\nc")},
          {"is", std::vector<int64_t>{1, 2}},
          {"fs", std::vector<double>{}},
          {"ss", std::vector<std::string>{"p", "q"}}});
  b.graph.nodes[NodeId(0)].domain = "com.example";
  b.graph.nodes[NodeId(0)].has_subgraph = true;
  EXPECT_EQ(dump(b.graph),
            "input x[2] float32\n"
            "y: y[?] = com.example.Odd(x[2], -, x[2]) i=-1 f=0.1 s=\"a\\\"b?c\" is=[1, 2] fs=[] "
            "ss=[\"p\", \"q\"] with subgraph\n");
}

TEST(Dump, AbridgesLongLists) {
  Builder b;
  b.node("Odd", {}, "y", {{"is", std::vector<int64_t>(40, 7)}});
  const std::string text = dump(b.graph);
  EXPECT_NE(text.find("7, … 40 in all]"), std::string::npos) << text;
}

}  // namespace
}  // namespace parsimony
