#include "parsimony/onnx_io/reader.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <deque>

#include "parsimony/base/errors.h"
#include "tests/onnx_io/fixture.h"

namespace parsimony::onnx_io::test {
namespace {

using onnx::TensorProto;

struct Read {
  TemporaryFolder folder;
  ModelFile file;
  Graph graph;

  explicit Read(const onnx::ModelProto& model)
      : file((save(model, folder / "m.onnx"), folder / "m.onnx")), graph(to_graph(file)) {}
  explicit Read(const std::string& text) : Read(model_of(text)) {}
};

std::vector<double> numbers_of(const Weight& weight) {
  const HostTensor host = to_host(weight);
  std::vector<double> numbers;
  for (int64_t i = 0; i < host.count(); ++i) numbers.push_back(host.number(i));
  return numbers;
}

TEST(Reader, SaysWhichInitializersNoNodeReads) {
  onnx::ModelProto model = model_of(
      "g (bool c, float[2] x) => (float[2] y) { y = If (c) <"
      "then_branch = t () => (float[2] a) { a = Add(x, w) },"
      "else_branch = e () => (float[2] b) { b = Neg(x) } > }");
  for (const char* name : {"w", "s1", "s2", "s3"}) {
    *model.mutable_graph()->add_initializer() = counting(name, TensorProto::FLOAT, {1}, true);
  }
  EXPECT_EQ(Read(model).graph.notes,
            std::vector<std::string>{"no node reads 3 initializers \"s1\", \"s2\", \"s3\", which "
                                     "are kept unchanged"});
  model.mutable_graph()->mutable_initializer()->DeleteSubrange(2, 2);
  EXPECT_EQ(Read(model).graph.notes,
            std::vector<std::string>{"no node reads initializer \"s1\", which is kept unchanged"});
}

/// Scales beside the graph, for compilers: one for all of a tensor fits whatever remains of it.
TEST(Reader, AnnotatedTensorsAreHeldWhereTheirScalesHaveAnAxis) {
  for (const int64_t scales : {1, 4}) {
    onnx::ModelProto model = model_of("g (float[2] x) => (float[2] y) { a = Relu(x) y = Neg(a) }");
    *model.mutable_graph()->add_initializer() = counting("s", TensorProto::FLOAT, {scales}, true);
    auto& annotation = *model.mutable_graph()->add_quantization_annotation();
    annotation.set_tensor_name("a");
    auto& entry = *annotation.add_quant_parameter_tensor_names();
    entry.set_key("SCALE_TENSOR");
    entry.set_value("s");
    const Read read(model);
    EXPECT_EQ(read.graph.value(read.graph.find("a")).captured, scales > 1);
  }
}

TEST(Reader, ReadsEveryElementTypeFromRawAndTypedFields) {
  const std::vector<double> signed_numbers = {1, -2, 3, -4, 5, -6};
  const std::vector<double> unsigned_numbers = {1, 2, 3, 4, 5, 6};
  const std::vector<std::pair<int32_t, std::vector<double>>> cases = {
      {TensorProto::FLOAT, signed_numbers},    {TensorProto::DOUBLE, signed_numbers},
      {TensorProto::FLOAT16, signed_numbers},  {TensorProto::BFLOAT16, signed_numbers},
      {TensorProto::INT8, signed_numbers},     {TensorProto::INT16, signed_numbers},
      {TensorProto::INT32, signed_numbers},    {TensorProto::INT64, signed_numbers},
      {TensorProto::UINT8, unsigned_numbers},  {TensorProto::UINT16, unsigned_numbers},
      {TensorProto::UINT32, unsigned_numbers}, {TensorProto::UINT64, unsigned_numbers},
      {TensorProto::BOOL, {0, 1, 0, 1, 0, 1}}};
  for (const auto& [type, requested] : cases) {
    for (const bool raw : {true, false}) {
      onnx::ModelProto model = model_of("g (float[2] x) => (float[2] y) { y = Relu(x) }");
      *model.mutable_graph()->add_initializer() = counting("w", type, {2, 3}, raw);
      const Read read(model);
      const Weight& weight = weight_of(read.graph, "w");
      EXPECT_EQ(numbers_of(weight), requested) << "type " << type << " raw " << raw;
      EXPECT_EQ(weight.dims, (Shape{2, 3}));
    }
  }
}

/// Whether as initializers or as Constant nodes, here and in bodies. Of constants that differ
/// neither is taken.
TEST(Reader, TakesConstantsThatAreDefinedTwiceAlike) {
  const std::string chain = "g (float[2] x) => (float[2] y) { ";
  const std::string constant = "w = Constant <value = float[2] {1, 2}> () ";
  onnx::ModelProto model = model_of(chain + constant + constant + "y = Add(x, w) }");
  EXPECT_EQ(numbers_of(weight_of(Read(model).graph, "w")), (std::vector<double>{1, 2}));

  model = model_of(chain + "y = Add(x, w) }");
  for (int i = 0; i < 2; ++i) {
    *model.mutable_graph()->add_initializer() = counting("w", TensorProto::FLOAT, {2}, true);
  }
  const Read twice(model);
  EXPECT_EQ(twice.graph.weights.size(), 1);
  EXPECT_EQ(twice.graph.nodes.size(), 1);

  const std::string in_body = "{ y = If (c) < then_branch = t () => (float[2] o) { " + constant +
                              constant + "o = Add(x, w) }, else_branch = e () => (float[2] p) " +
                              "{ p = Neg(x) } > }";
  EXPECT_NO_THROW(Read("g (float[2] x, bool c) => (float[2] y) " + in_body));

  *model.mutable_graph()->add_initializer() = counting("w", TensorProto::FLOAT, {1}, true);
  EXPECT_THROW(Read{model}, ModelError);
}

TEST(Reader, TakesTheOldestIrVersion) {
  onnx::ModelProto model = model_of("g (float[2] x) => (float[2] y) { y = Relu(x) }");
  model.set_ir_version(1);
  EXPECT_EQ(Read(model).graph.nodes.size(), 1);
}

/// Nodes in any order, an opset that is imported twice under both of its names.
TEST(Reader, TakesNodesInAnyOrder) {
  onnx::ModelProto model = model_of("g (float[2] x) => (float[2] y) { y = Neg(a) a = Relu(x) }");
  auto& again = *model.add_opset_import();
  again.set_domain("ai.onnx");
  again.set_version(model.opset_import(0).version());
  const Read read(model);
  EXPECT_EQ(read.graph.nodes.front().op, "Relu");
}

TEST(Reader, Float16InInt32DataHasAStrideOfFour) {
  onnx::ModelProto model = model_of("g (float[2] x) => (float[2] y) { y = Relu(x) }");
  *model.mutable_graph()->add_initializer() = counting("w", TensorProto::FLOAT16, {3}, false);
  const Read read(model);
  EXPECT_EQ(weight_of(read.graph, "w").stride, 4);
  EXPECT_EQ(weight_of(read.graph, "w").dtype, DType::kFloat16);
}

TEST(Reader, ConstantNodesAreWeights) {
  const Read read(R"(g (float[2] x) => (float[2] y) {
    a = Constant <value = float[2] {1.5, 2.5}> ()
    b = Constant <value_float = 4.0> ()
    c = Constant <value_floats = [5.0, 6.0]> ()
    i = Constant <value_int = 7> ()
    k = Constant <value_ints = [8, 9]> ()
    s = Constant <value_string = "text"> ()
    y = Unknown (x, a, b, c, i, k, s)
  })");
  EXPECT_EQ(numbers_of(weight_of(read.graph, "a")), (std::vector<double>{1.5, 2.5}));
  EXPECT_EQ(numbers_of(weight_of(read.graph, "b")), std::vector<double>{4});
  EXPECT_EQ(weight_of(read.graph, "b").dims, Shape{});
  EXPECT_EQ(numbers_of(weight_of(read.graph, "c")), (std::vector<double>{5, 6}));
  EXPECT_EQ(numbers_of(weight_of(read.graph, "i")), std::vector<double>{7});
  EXPECT_EQ(numbers_of(weight_of(read.graph, "k")), (std::vector<double>{8, 9}));
  EXPECT_TRUE(read.graph.value(read.graph.find("s")).captured);
  EXPECT_EQ(read.graph.nodes.size(), 1u);
  EXPECT_EQ(read.graph.nodes[NodeId(0)].inputs.size(), 7u);
}

TEST(Reader, IdentitiesOfAWeightAreTheWeight) {
  const Read read(R"(g (float[2] x, float[2] w = {1, 2}) => (float[2] y, float[2] w3) {
    w1 = Identity (w)
    w2 = Identity (w1)
    w3 = Identity (w2)
    z = Identity (x)
    y = Sum (z, w1, w2, w3)
  })");
  const ValueId w = read.graph.find("w");
  const Node& sum = node_of(read.graph, "y");
  EXPECT_EQ(read.graph.value(sum.inputs[0]).name, "z");
  for (size_t i = 1; i < 4; ++i) EXPECT_EQ(sum.inputs[i], w) << i;
  EXPECT_EQ(read.graph.find("w1"), kNone);
  EXPECT_EQ(read.graph.find("w2"), kNone);
  EXPECT_EQ(node_of(read.graph, "w3").op, "Identity") << "it makes a graph output";
  EXPECT_EQ(node_of(read.graph, "w3").inputs, std::vector<ValueId>{w});
  EXPECT_TRUE(read.graph.value(read.graph.find("w3")).is_output);
  EXPECT_EQ(read.graph.nodes.size(), 3u);
}

TEST(Reader, DeclaredInitializersAreNoInputs) {
  const Read read(R"(<ir_version: 3, opset_import: ["ai.onnx" : 9]>
    g (float[N, 2] x, float[2] w = {1, 2}) => (float[N, 2] y) { y = Add (x, w) })");
  ASSERT_EQ(read.graph.inputs.size(), 1u);
  const Value& x = read.graph.value(read.graph.inputs[0]);
  EXPECT_EQ(x.name, "x");
  EXPECT_TRUE(x.is_input);
  EXPECT_EQ(*x.declared, (Shape{-1, 2}));
  EXPECT_EQ(x.symbols, (std::vector<std::string>{"N", ""}));
  EXPECT_EQ(numbers_of(weight_of(read.graph, "w")), (std::vector<double>{1, 2}));
  EXPECT_FALSE(read.graph.value(read.graph.find("w")).is_input);
  EXPECT_EQ(read.graph.nodes[NodeId(0)].opset, 9);
  EXPECT_EQ(read.graph.nodes[NodeId(0)].domain, "");
}

TEST(Reader, NodesInSubgraphsStandInTheGraph) {
  const Read read(R"(g (bool c, float[2] x) => (float[2] y) {
    a = Relu (x)
    b = Relu (x)
    d = Relu (x)
    local = Relu (x)
    y = If (c) <
      then_branch = t () => (float[2] o) {
        local = Neg (a)
        o = If (c) < then_branch = u () => (float[2] p) { p = Add (local, b) },
                     else_branch = v () => (float[2] d) { } >
      },
      else_branch = e () => (float[2] q) { q = Neg (x) } >
  })");
  const Graph& graph = read.graph;
  const auto operand = [&](const std::string& key, size_t i) {
    return graph.value(node_of(graph, key).inputs.at(i)).name;
  };
  EXPECT_EQ(operand("y::then_branch::local", 0), "a");
  EXPECT_EQ(operand("y::then_branch::o::then_branch::p", 0), "y::then_branch::local")
      << "the nearest";
  EXPECT_EQ(operand("y::then_branch::o::then_branch::p", 1), "b");
  EXPECT_EQ(operand("y::else_branch::q", 0), "x");
  const Node& branch = node_of(graph, "y");
  EXPECT_TRUE(branch.has_subgraph);
  EXPECT_EQ(branch.body, kNone);
  ASSERT_EQ(branch.bodies.size(), 2u);
  const Body& then = graph.bodies[branch.bodies[0]];
  EXPECT_EQ(then.attribute, "then_branch");
  EXPECT_EQ(then.around, kNone);
  EXPECT_EQ(&graph.node(then.owner), &branch);
  EXPECT_EQ(then.outputs, std::vector<ValueId>{graph.find("y::then_branch::o")});
  const Node& inner = node_of(graph, "y::then_branch::o");
  EXPECT_EQ(inner.body, branch.bodies[0]);
  const Body& last = graph.bodies[inner.bodies.at(1)];
  EXPECT_EQ(last.around, branch.bodies[0]);
  EXPECT_EQ(last.outputs, std::vector<ValueId>{graph.find("d")}) << "a name around it";
  const auto captured = [&](const std::string& name) {
    return graph.value(graph.find(name)).captured;
  };
  EXPECT_TRUE(captured("d"));
  EXPECT_TRUE(captured("y::then_branch::o"));
  EXPECT_FALSE(captured("a")) << "an operand like any other";
}

TEST(Reader, BodiesStandBetweenWhatTheirOwnerReadsAndTheOwner) {
  const Read read(R"(g (int64 m, bool go, float[2] x) => (float[2] y) {
    y = Loop (m, go, late) <
      body = b (int64 i, bool on, float[2] s) => (bool on, float[2] s_out) {
        unused = Neg (x)
        s_out = Add (s, other)
      } >
    late = Exp (x)
    other = Relu (x)
  })");
  std::vector<std::string> order;
  for (const Node& node : read.graph.nodes) order.push_back(key_of(read.graph, node));
  EXPECT_EQ(order.back(), "y");
  const auto at = [&](const std::string& key) {
    return std::find(order.begin(), order.end(), key) - order.begin();
  };
  EXPECT_LT(at("late"), at("y::body::unused")) << "it could read the input of the body";
  EXPECT_LT(at("other"), at("y::body::s_out"));
  const Body& body = read.graph.bodies[BodyId(0)];
  ASSERT_EQ(body.inputs.size(), 3u);
  EXPECT_EQ(read.graph.value(body.inputs[2]).name, "y::body::s");
  EXPECT_EQ(body.outputs.at(0), body.inputs[1]);
}

TEST(Reader, ANameThatLooksLikeAPathIntoABodyIsRefused) {
  onnx::ModelProto model = model_of(R"(g (bool c, float[2] x) => (float[2] y) {
    a = Relu (x)
    y = If (c) < then_branch = t () => (float[2] o) { o = Neg (x) },
                 else_branch = e () => (float[2] q) { q = Neg (x) } >
  })");
  EXPECT_NO_THROW(Read{model});
  model.mutable_graph()->mutable_node(0)->set_output(0, "y::else_branch::q");
  EXPECT_THROW(Read{model}, ModelError);
}

TEST(Reader, WhatIsWrongInASubgraphIsNamedWithIt) {
  try {
    const Read read(R"(g (bool c, float[2] x) => (float[2] y) {
      y = If (c) < then_branch = t () => (float[2] o) { o = Neg (nowhere) },
                   else_branch = e () => (float[2] q) { q = Neg (x) } >
    })");
    FAIL();
  } catch (const ModelError& error) {
    EXPECT_NE(std::string(error.what()).find("node \"y\", then_branch: "), std::string::npos)
        << error.what();
    EXPECT_NE(std::string(error.what()).find("nowhere"), std::string::npos) << error.what();
  }
}

TEST(Reader, AttributesOfEveryKind) {
  const Read read(R"(g (int64[1] x) => (float[N] y) {
    z = ConstantOfShape <value = float[1] {2.5}, other = int64[2] {3, 4}> (x)
    y = Op <a = 1, b = 2.5, c = "text", d = [1, 2], e = [1.5], f = ["u", "v"]> (z)
  })");
  using Pair = std::pair<std::string, Attribute>;
  EXPECT_EQ(node_of(read.graph, "z").attributes,
            (std::vector<Pair>{{"value.dtype", "float32"},
                               {"value", std::vector<double>{2.5}},
                               {"other.dtype", "int64"},
                               {"other", std::vector<int64_t>{3, 4}}}));
  EXPECT_EQ(node_of(read.graph, "y").attributes,
            (std::vector<Pair>{{"a", int64_t{1}},
                               {"b", 2.5},
                               {"c", "text"},
                               {"d", std::vector<int64_t>{1, 2}},
                               {"e", std::vector<double>{1.5}},
                               {"f", std::vector<std::string>{"u", "v"}}}));
}

TEST(Reader, WhatHasNoNumbersIsPinned) {
  onnx::ModelProto model =
      model_of("g (float[2] x) => (float[2] y) { y = Op (x, text, thin, eighth) }");
  onnx::GraphProto& graph = *model.mutable_graph();
  TensorProto& text = *graph.add_initializer();
  text.set_name("text");
  text.set_data_type(TensorProto::STRING);
  text.add_dims(1);
  text.add_string_data("a");
  TensorProto& eighth = *graph.add_initializer();
  eighth.set_name("eighth");
  eighth.set_data_type(24);  // FLOAT8E8M0
  eighth.add_dims(2);
  eighth.set_raw_data("ab");
  onnx::SparseTensorProto& sparse = *graph.add_sparse_initializer();
  *sparse.mutable_values() = counting("thin", TensorProto::FLOAT, {2}, true);
  sparse.add_dims(10);
  const Read read(model);
  for (const char* name : {"text", "thin", "eighth"}) {
    const Value& value = read.graph.value(read.graph.find(name));
    EXPECT_TRUE(value.captured) << name;
    EXPECT_EQ(value.weight, kNone) << name;
  }
  EXPECT_EQ(*read.graph.value(read.graph.find("thin")).declared, Shape{10});
}

TEST(Reader, AbsentOptionalInputsAndUnsortedNodes) {
  const Read read(R"(g (float[2] x) => (float[2] y) {
    y = Clip (b, , m)
    b = Relu (a)
    a = Relu (x)
    m = Identity (n)
    n = Identity (k)
    k = Constant <value = float {3.0}> ()
  })");
  ASSERT_EQ(read.graph.nodes.size(), 3u);
  const Node& clip = node_of(read.graph, "y");
  EXPECT_EQ(read.graph.nodes[NodeId(2)].op, "Clip");
  ASSERT_EQ(clip.inputs.size(), 3u);
  EXPECT_EQ(clip.inputs[1], kNone);
  EXPECT_EQ(read.graph.value(clip.inputs[2]).name, "k");
}

TEST(Reader, EmptyTensorsAreFine) {
  onnx::ModelProto model = model_of("g (float[2] x) => (float[2] y) { y = Resize (x, roi) }");
  *model.mutable_graph()->add_initializer() = counting("roi", TensorProto::FLOAT, {0}, true);
  const Read read(model);
  EXPECT_EQ(weight_of(read.graph, "roi").count(), 0);
}

// The checksum is summed up in the background, by libcrypto, which by itself would clean up at exit
// while statics still hold files open.
TEST(ModelFile, MayBeLeftOpenAtExit) {
  const TemporaryFolder folder;
  const std::string path = folder / "m.onnx";
  save(model_of("g (float[2] x) => (float[2] y) { y = Relu(x) }"), path);
  for (int run = 0; run < 20; ++run) {
    EXPECT_EXIT(
        {
          static std::deque<ModelFile> open;
          for (int file = 0; file < 8; ++file) open.emplace_back(path);
          std::exit(0);
        },
        testing::ExitedWithCode(0), "");
  }
}

}  // namespace
}  // namespace parsimony::onnx_io::test
