#include "parsimony/graph/graph.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <limits>

#include "parsimony/base/errors.h"
#include "parsimony/graph/elements.h"
#include "tests/graph/builder.h"

namespace parsimony {
namespace {

using test::Builder;

std::vector<std::string> names_of_nodes(const Graph& graph) {
  std::vector<std::string> names;
  for (const Node& node : graph.nodes) names.push_back(node.name);
  return names;
}

TEST(Finish, LinksProducersAndUses) {
  Builder b;
  const ValueId x = b.input("x", {1, 4});
  const ValueId y = b.node("Relu", {x}, "y");
  const ValueId z = b.node("Add", {y, y}, "z");
  b.output(z);
  finish(b.graph);
  EXPECT_EQ(b.graph.value(x).producer, kNone);
  EXPECT_TRUE(b.graph.value(x).is_input);
  EXPECT_EQ(b.graph.value(y).producer, NodeId(0));
  EXPECT_EQ(b.graph.value(y).uses, (std::vector<Use>{{NodeId(1), 0}, {NodeId(1), 1}}));
  EXPECT_TRUE(b.graph.value(z).is_output);
}

TEST(Finish, KeepsASortedFileAsItIs) {
  Builder b;
  const ValueId x = b.input("x", {1});
  const ValueId a1 = b.node("Relu", {x}, "a1");
  const ValueId a2 = b.node("Relu", {a1}, "a2");
  const ValueId b1 = b.node("Relu", {x}, "b1");
  b.node("Relu", {b1}, "b2");
  b.node("Relu", {a2}, "a3");
  finish(b.graph);
  EXPECT_EQ(names_of_nodes(b.graph), (std::vector<std::string>{"a1", "a2", "b1", "b2", "a3"}));
}

TEST(Finish, SortsAndLinksTheNewPlaces) {
  Builder b;
  const ValueId x = b.input("x", {1});
  const ValueId early = b.value("early");
  const ValueId late = b.node("Relu", {early}, "late");
  b.add("Relu", {x}, {early}).name = "early";
  finish(b.graph);
  EXPECT_EQ(names_of_nodes(b.graph), (std::vector<std::string>{"early", "late"}));
  EXPECT_EQ(b.graph.value(early).producer, NodeId(0));
  EXPECT_EQ(b.graph.value(late).producer, NodeId(1));
  EXPECT_EQ(b.graph.value(x).uses, (std::vector<Use>{{NodeId(0), 0}}));
}

TEST(Finish, MayBeCalledAgain) {
  Builder b;
  const ValueId x = b.input("x", {1});
  b.node("Relu", {x}, "y");
  finish(b.graph);
  finish(b.graph);
  EXPECT_EQ(b.graph.value(x).uses.size(), 1u);
}

TEST(Finish, SortsADeepChainWithoutRecursion) {
  Builder b;
  constexpr int kDepth = 200'000;
  ValueId next = b.value("end");
  for (int i = 0; i < kDepth; ++i) {
    const ValueId before = b.value("");
    b.add("Relu", {before}, {next});
    next = before;
  }
  finish(b.graph);
  EXPECT_EQ(b.graph.value(ValueId(0)).producer, NodeId(kDepth - 1));
}

TEST(Finish, RefusesACycle) {
  Builder b;
  const ValueId y = b.value("y");
  const ValueId z = b.node("Relu", {y}, "z");
  b.add("Relu", {z}, {y});
  EXPECT_THROW(finish(b.graph), ModelError);
}

TEST(Finish, RefusesANodeThatReadsItself) {
  Builder b;
  const ValueId y = b.value("y");
  b.add("Relu", {y}, {y});
  EXPECT_THROW(finish(b.graph), ModelError);
}

TEST(Finish, RefusesTwoOrigins) {
  Builder b;
  const ValueId x = b.input("x", {1});
  const ValueId y = b.node("Relu", {x}, "y");
  b.add("Neg", {x}, {y});
  EXPECT_THROW(finish(b.graph), ModelError);

  Builder c;
  const ValueId w = c.floats("w", {1});
  c.add("Neg", {w}, {w});
  EXPECT_THROW(finish(c.graph), ModelError);
}

TEST(Names, KeyIsTheFirstNamedOutput) {
  Builder b;
  const ValueId x = b.input("x", {1});
  const ValueId unnamed = b.value("");
  const ValueId y = b.value("y");
  const Node& node = b.add("Split", {x}, {kNone, unnamed, y});
  EXPECT_EQ(key_of(b.graph, node), "y");
  EXPECT_EQ(label_of(b.graph, node), "y");
  EXPECT_EQ(b.graph.find("y"), y);
  EXPECT_EQ(b.graph.find("nowhere"), kNone);
  b.graph.nodes[NodeId(0)].name = "split_1";
  EXPECT_EQ(label_of(b.graph, b.graph.nodes[NodeId(0)]), "split_1");
}

TEST(Names, ANodeWithoutOutputsHasAnEmptyKey) {
  Builder b;
  EXPECT_EQ(key_of(b.graph, b.add("Relu", {}, {})), "");
}

/// Two normalisations that read one bias, and whatever else `more` says.
struct SharedBias {
  Builder b;
  ValueId x = b.input("x", {1, 4, 8, 8});
  ValueId ones = b.floats("ones", {4});
  ValueId zeros = b.floats("zeros", {4});

  ValueId norm(const std::string& name) {
    const ValueId scale = b.floats(name + ".scale", {4});
    const ValueId mean = b.floats(name + ".mean", {4});
    const ValueId var = b.floats(name + ".var", {4});
    return b.node("BatchNormalization", {x, scale, zeros, mean, var}, name);
  }
  ValueId bias_of(size_t node) const { return b.graph.nodes[NodeId(node)].inputs[2]; }
};

TEST(SharedVectors, EveryRegularUseGetsItsOwnValue) {
  SharedBias net;
  net.norm("bn1");
  net.norm("bn2");
  finish(net.b.graph);
  separate_shared_vectors(net.b.graph);
  const Graph& graph = net.b.graph;
  ASSERT_NE(net.bias_of(0), net.bias_of(1));
  EXPECT_EQ(net.bias_of(0), net.zeros);
  for (const size_t node : {size_t{0}, size_t{1}}) {
    const Value& bias = graph.value(net.bias_of(node));
    EXPECT_EQ(bias.name, "zeros");
    EXPECT_EQ(bias.weight, graph.value(net.zeros).weight);
    EXPECT_TRUE(bias.shared_copy);
    EXPECT_EQ(bias.uses, (std::vector<Use>{{NodeId(node), 2}}));
  }
  EXPECT_FALSE(graph.value(graph.nodes[NodeId(0)].inputs[1]).shared_copy);
}

TEST(SharedVectors, IrregularUsesKeepTheOriginal) {
  SharedBias net;
  net.norm("bn1");
  net.b.node("Concat", {net.zeros, net.zeros}, "both", {{"axis", int64_t{0}}});
  finish(net.b.graph);
  separate_shared_vectors(net.b.graph);
  const Graph& graph = net.b.graph;
  EXPECT_NE(net.bias_of(0), net.zeros);
  EXPECT_TRUE(graph.value(net.bias_of(0)).shared_copy);
  EXPECT_FALSE(graph.value(net.zeros).shared_copy);
  EXPECT_EQ(graph.value(net.zeros).uses, (std::vector<Use>{{NodeId(1), 0}, {NodeId(1), 1}}));
}

TEST(SharedVectors, WhatASubgraphCapturesStaysOnTheOriginal) {
  SharedBias net;
  net.norm("bn1");
  net.norm("bn2");
  net.b.graph.value(net.zeros).captured = true;
  finish(net.b.graph);
  separate_shared_vectors(net.b.graph);
  const Graph& graph = net.b.graph;
  EXPECT_NE(net.bias_of(0), net.zeros);
  EXPECT_NE(net.bias_of(1), net.zeros);
  EXPECT_TRUE(graph.value(net.zeros).captured);
  EXPECT_FALSE(graph.value(net.bias_of(0)).captured);
  EXPECT_TRUE(graph.value(net.zeros).uses.empty());
}

TEST(SharedVectors, MatricesIntegersAndSingleUsesStayTied) {
  Builder b;
  const ValueId x = b.input("x", {2, 4});
  const ValueId matrix = b.floats("matrix", {4, 4});
  const ValueId number = b.floats("number", {1});
  const ValueId once = b.floats("once", {4});
  const ValueId steps = b.weight("steps", std::vector<int64_t>{1, 2}, {2}, DType::kInt64);
  b.node("MatMul", {x, matrix}, "y");
  b.node("MatMul", {x, matrix}, "z");
  b.node("Add", {x, number}, "p");
  b.node("Add", {x, number}, "q");
  b.node("Add", {x, once}, "r");
  b.node("Add", {steps, steps}, "s");
  finish(b.graph);
  const size_t values = b.graph.values.size();
  separate_shared_vectors(b.graph);
  EXPECT_EQ(b.graph.values.size(), values);
  EXPECT_FALSE(b.graph.value(once).shared_copy);
}

TEST(SharedVectors, ValuesOfOneWeightAreCountedTogether) {
  Builder b;
  const ValueId x = b.input("x", {2, 4});
  const ValueId first = b.floats("bias", {4});
  const ValueId second = b.value("bias_behind_identity");
  b.graph.value(second).weight = b.graph.value(first).weight;
  b.node("Add", {x, first}, "y");
  b.node("Add", {x, second}, "z");
  finish(b.graph);
  separate_shared_vectors(b.graph);
  EXPECT_TRUE(b.graph.value(first).shared_copy);
  EXPECT_TRUE(b.graph.value(second).shared_copy);
}

TEST(ToHost, ReadsHalfPrecision) {
  Builder b;
  b.weight("half", std::vector<uint16_t>{0x3C00, 0xC000, 0x7BFF}, {3}, DType::kFloat16);
  b.weight("brain", std::vector<uint16_t>{0x3F80, 0xC000}, {2}, DType::kBFloat16);
  EXPECT_EQ(to_host(b.graph.weights[WeightId(0)]).floats, (std::vector<double>{1, -2, 65504}));
  EXPECT_EQ(to_host(b.graph.weights[WeightId(1)]).floats, (std::vector<double>{1, -2}));
}

TEST(ToHost, ReadsSmallTypesFromWiderFields) {
  Builder b;
  b.weight("wide", std::vector<uint32_t>{0x3C00, 0x4000}, {2}, DType::kFloat16);
  EXPECT_EQ(b.graph.weights[WeightId(0)].stride, 4);
  EXPECT_EQ(to_host(b.graph.weights[WeightId(0)]).floats, (std::vector<double>{1, 2}));
}

TEST(ToHost, KeepsSignsAndShapes) {
  Builder b;
  b.weight("bytes", std::vector<int8_t>{-1, 127}, {2, 1}, DType::kInt8);
  b.weight("unsigned", std::vector<uint8_t>{255}, {}, DType::kUInt8);
  b.weight("longs", std::vector<int64_t>{std::numeric_limits<int64_t>::min()}, {1}, DType::kInt64);
  const HostTensor bytes = to_host(b.graph.weights[WeightId(0)]);
  EXPECT_EQ(bytes.ints, (std::vector<int64_t>{-1, 127}));
  EXPECT_EQ(bytes.dims, (Shape{2, 1}));
  EXPECT_EQ(bytes.dtype, DType::kInt8);
  EXPECT_EQ(to_host(b.graph.weights[WeightId(1)]), HostTensor::scalar(255, DType::kUInt8));
  EXPECT_EQ(to_host(b.graph.weights[WeightId(2)]).ints[0], std::numeric_limits<int64_t>::min());
}

TEST(ToHost, HasNoNumbersForStrings) {
  Builder b;
  b.weight("words", std::vector<uint8_t>{0}, {1}, DType::kString);
  EXPECT_THROW(to_host(b.graph.weights[WeightId(0)]), UnsupportedError);
}

TEST(HostTensors, MakersChooseTheVectorByType) {
  const HostTensor half = HostTensor::vector({1, 2}, DType::kFloat16);
  EXPECT_TRUE(half.ints.empty());
  EXPECT_EQ(half.count(), 2);
  EXPECT_EQ(half.number(1), 2.0);
  EXPECT_TRUE(HostTensor::scalar(3).dims.empty());
}
TEST(WriteNumber, RoundsOnceToShortTypes) {
  const auto written = [](double value, DType type) {
    std::byte bytes[2];
    write_number(value, type, bytes);
    EXPECT_EQ(reader_of(type)(bytes), rounded(type, value)) << value;
    return reader_of(type)(bytes);
  };
  // Above a tie by less than a float shows.
  EXPECT_EQ(written(1 + 0x1p-11 + 0x1p-40, DType::kFloat16), 1 + 0x1p-10);
  EXPECT_EQ(written(1 + 0x1p-11, DType::kFloat16), 1);
  EXPECT_EQ(written(-1 - 0x1p-8 - 0x1p-40, DType::kBFloat16), -1 - 0x1p-7);
  EXPECT_EQ(written(1 + 0x1p-8, DType::kBFloat16), 1);
  EXPECT_EQ(written(0x1p-25 + 0x1p-60, DType::kFloat16), 0x1p-24);
  EXPECT_EQ(written(1e-300, DType::kFloat16), 0);
  EXPECT_EQ(written(65519, DType::kFloat16), 65504);
  EXPECT_TRUE(std::isinf(written(65520, DType::kFloat16)));
  EXPECT_TRUE(std::isinf(written(1e300, DType::kBFloat16)));
}

}  // namespace
}  // namespace parsimony
