// Bodies of control flow and functions, as plans see them: names, settings, masks, what is refused.
#include <gtest/gtest.h>
#include <onnx/checker.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "parsimony/api/depth.h"
#include "parsimony/api/prune.h"
#include "parsimony/base/files.h"
#include "parsimony/graph/operators/linear_form.h"
#include "parsimony/masks/cost.h"
#include "parsimony/onnx_io/editor.h"
#include "parsimony/onnx_io/model_file.h"
#include "parsimony/onnx_io/reader.h"
#include "parsimony/speedup/make_plan.h"
#include "tests/support/fixture.h"

namespace parsimony::test {
namespace {

/// A model in a file, and what is made of it.
struct BranchedNetwork {
  TemporaryFolder folder;
  std::unique_ptr<onnx_io::ModelFile> file;
  Graph graph;

  explicit BranchedNetwork(const onnx::ModelProto& model) {
    write_file(folder / "net.onnx", model.SerializeAsString());
    file = std::make_unique<onnx_io::ModelFile>(folder / "net.onnx");
    graph = onnx_io::to_graph(*file);
  }

  Pruning prune(const ConfigList& config) { return plan_pruning(graph, config, {}); }
  Pruning prune(double ratio) {
    Shorthand shorthand;
    shorthand.ratio = ratio;
    return prune(from_shorthand(shorthand));
  }

  onnx::ModelProto apply(const Pruning& pruning) {
    onnx_io::OnnxEditor editor(*file);
    apply_plan(pruning.plan, graph, pruning.analysis.probe, editor);
    file->write(folder / "small.onnx");
    onnx::ModelProto small;
    small.ParseFromString(read_file(folder / "small.onnx"));
    onnx::checker::check_model(small);
    return small;
  }
};

Shape shape_of(const onnx::ValueInfoProto& info) {
  Shape shape;
  for (const auto& dim : info.type().tensor_type().shape().dim()) shape.push_back(dim.dim_value());
  return shape;
}

/// Which tensors a plan cuts, each once.
std::vector<std::string> cut(const Plan& plan) {
  std::vector<std::string> names;
  for (const TensorCut& one : cuts_of(plan)) names.emplace_back(one.tensor);
  std::sort(names.begin(), names.end());
  return names;
}

/// Both branches have a layer "first" of their own, a weight "W" of their own and share "S".
onnx::ModelProto branches() {
  onnx::ModelProto model = model_of(R"(net (float[2,3] x, bool p) => (float[2,3] y)
  {
    y = If (p) <
      then_branch = t () => (float[2,3] u) {
        W = Constant <value = float[4,3] {1,2,3,4,5,6,7,8,9,10,11,12}> ()
        h = Gemm <transB = 1> (x, W)
        u = MatMul (h, S)
      },
      else_branch = e () => (float[2,3] v) {
        W = Constant <value = float[4,3] {12,11,10,9,8,7,6,5,4,3,2,1}> ()
        h = Gemm <transB = 1> (x, W)
        v = MatMul (h, S)
      }>
  })");
  add_weight(model, "S", "4x3");
  onnx::NodeProto& branch = *model.mutable_graph()->mutable_node(0);
  branch.set_name("choice");
  for (auto& attribute : *branch.mutable_attribute()) {
    attribute.mutable_g()->mutable_node(1)->set_name("first");
  }
  return model;
}

TEST(Structure, BranchesThatReadOneWeightAreCutAlike) {
  BranchedNetwork net(branches());
  const Pruning pruning = net.prune(0.5);
  EXPECT_EQ(cut(pruning.plan),
            (std::vector<std::string>{"S", "y::else_branch::W", "y::then_branch::W"}));
  const onnx::ModelProto small = net.apply(pruning);
  const auto& attributes = small.graph().node(0).attribute();
  for (const auto& attribute : attributes) {
    EXPECT_EQ(attribute.g().node(0).attribute(0).t().dims(0), 2) << attribute.name();
  }
  EXPECT_EQ(small.graph().initializer(0).dims(0), 2);
}

/// Elements of four bits are not read; what comes before and behind them is cut all the same.
TEST(Structure, WeightsThatAreNotReadHoldTheirOwnAxesAlone) {
  onnx::ModelProto model = model_of(
      "g (float[2,4] x) => (float[2,3] y) { a = MatMul(x, v) "
      "b = MatMul(a, w) q = DequantizeLinear(i, s) c = MatMul(b, q) "
      "d = MatMul(c, u) y = MatMul(d, t) }");
  for (const auto& [name, dims] : {std::pair("v", "4x8"), std::pair("w", "8x6"),
                                   std::pair("u", "6x8"), std::pair("t", "8x3")}) {
    add_weight(model, name, dims);
  }
  onnx::TensorProto& scale = *model.mutable_graph()->add_initializer();
  scale.set_name("s");
  scale.set_data_type(onnx::TensorProto::FLOAT);
  scale.add_float_data(0.1F);
  onnx::TensorProto& weight = *model.mutable_graph()->add_initializer();
  weight.set_name("i");
  weight.set_data_type(24);  // float8e8m0
  for (int axis = 0; axis < 2; ++axis) weight.add_dims(6);
  weight.set_raw_data(std::string(36, '\x21'));
  BranchedNetwork net(model);
  const Pruning pruning = net.prune(0.5);
  EXPECT_EQ(cut(pruning.plan), (std::vector<std::string>{"t", "u", "v", "w"}));
  const auto& whole = pruning.plan.unpruned_dims;
  const auto found = std::ranges::find(whole, "w[1]", &UnprunedDim::axis);
  ASSERT_NE(found, whole.end());
  EXPECT_EQ(found->reason, "elements of float8e8m0 are not cut");
}

void declare(onnx::ModelProto& model, const std::string& name, const Shape& dims) {
  onnx::ValueInfoProto& info = *model.mutable_graph()->add_value_info();
  info.set_name(name);
  onnx::TypeProto_Tensor& type = *info.mutable_type()->mutable_tensor_type();
  type.set_elem_type(onnx::TensorProto::FLOAT);
  for (const int64_t dim : dims) type.mutable_shape()->add_dim()->set_dim_value(dim);
}

/// What the file declares is what is found where nothing is declared.
void want_true_declarations(const onnx::ModelProto& small) {
  onnx::ModelProto untold = small;
  for (auto& output : *untold.mutable_graph()->mutable_output()) {
    output.mutable_type()->mutable_tensor_type()->clear_shape();
  }
  untold.mutable_graph()->clear_value_info();
  const BranchedNetwork net(untold);
  const Facts facts = infer(net.graph);
  std::map<std::string, Shape> found;
  for (const ValueId v : net.graph.values.ids()) {
    if (facts.shapes[v]) found.try_emplace(net.graph.value(v).name, *facts.shapes[v]);
  }
  for (const auto* declared : {&small.graph().output(), &small.graph().value_info()}) {
    for (const auto& info : *declared) {
      EXPECT_EQ(shape_of(info), found[info.name()]) << info.name();
    }
  }
}

/// A vector of channels that the network also shows: what it shows is uncut, and declared so.
TEST(Structure, OutputsThatShowAVectorAreDeclaredAsTheyAre) {
  const std::string layers = "{ a = Conv(x, w0) b = Mul(a, s) r = Relu(b) y = Conv(r, w2) ";
  for (const auto& [out, end] : {std::pair("so", "so = Identity(s) }"), std::pair("s", "}"),
                                 std::pair("so", "t = Identity(s) so = Identity(t) }"),
                                 std::pair("so", "n = Neg(s) so = Identity(n) }")}) {
    for (const bool told_more : {false, true}) {
      SCOPED_TRACE(std::string(end) + (told_more ? ", s and b declared" : ""));
      onnx::ModelProto model =
          model_of("g (float[1,3,8,8] x) => (float[1,4,8,8] y, float[1,16,1,1] " +
                   std::string(out) + ") " + layers + end);
      add_weight(model, "w0", "16x3x1x1");
      add_weight(model, "s", "1x16x1x1");
      add_weight(model, "w2", "4x16x1x1");
      if (told_more) {
        declare(model, "b", {1, 16, 8, 8});
        if (std::string(out) != "s") declare(model, "s", {1, 16, 1, 1});
      }
      BranchedNetwork net(model);
      const Pruning pruning = net.prune(0.5);
      const onnx::ModelProto small = net.apply(pruning);
      want_true_declarations(small);
      EXPECT_EQ(shape_of(small.graph().output(1)), (Shape{1, 16, 1, 1}));
    }
  }
}

TEST(Structure, CostCountsEveryNodeAndEveryWeightOnce) {
  BranchedNetwork net(branches());
  const Analysis analysis = analyse(net.graph, {});
  for (const Node& node : net.graph.nodes) {
    EXPECT_FALSE(hides_macs(NodeView(net.graph, node, analysis.facts))) << node.op;
  }
  const CostModel cost(net.graph, analysis.sample, analysis.coupling);
  EXPECT_EQ(cost.dense().params, 3 * 12);
  EXPECT_EQ(cost.dense().macs, 4 * 2 * 3 * 4) << "both branches";
}

TEST(Structure, SettingsNameLayersInsideBodies) {
  BranchedNetwork net(branches());
  Shorthand shorthand;
  shorthand.ratio = 0.5;
  shorthand.exclude = {"y::then_branch::first"};
  EXPECT_TRUE(net.prune(from_shorthand(shorthand)).plan.empty())
      << "the other branch is tied to it";
  EXPECT_EQ(label_of(net.graph, net.graph.nodes.back()), "choice");
}

TEST(Structure, ACopyStandsInTheBodyOfWhatItCopies) {
  onnx::ModelProto model = model_of(R"(net (float[2,3] x, bool p) => (float[2,3] y)
  {
    B_2 = Constant <value = float[4] {1,1,1,1}> ()
    y = If (p) <
      then_branch = t () => (float[2,3] u) {
        B = Constant <value = float[4] {0,0,0,0}> ()
        h = Gemm <transB = 1> (x, W0, B)
        k = Gemm <transB = 1> (x, W1, B)
        a = MatMul (h, S)
        b = MatMul (k, T)
        u = Add (a, b)
      },
      else_branch = e () => (float[2,3] v) {
        h = Gemm <transB = 1> (x, W0, B_2)
        v = MatMul (h, S)
      }>
  })");
  for (const char* name : {"W0", "W1"}) add_weight(model, name, "4x3");
  for (const char* name : {"S", "T"}) add_weight(model, name, "4x3");
  BranchedNetwork net(model);
  const Pruning pruning = net.prune(0.5);
  ASSERT_EQ(pruning.plan.copies.size(), 1U);
  EXPECT_EQ(pruning.plan.copies[0].tensor, "y::then_branch::B_3") << "B_2 would hide another";
  const onnx::ModelProto small = net.apply(pruning);
  const auto& branch = small.graph().node(1).attribute(0).g();
  ASSERT_EQ(branch.initializer_size(), 1);
  EXPECT_EQ(branch.initializer(0).name(), "B_3");
}

constexpr const char* kHeader = R"(<ir_version: 8, opset_import: ["" : 13, "local" : 1]>
)";

TEST(Structure, IntegersOfAFunctionThatIsCalledOnceChangeInItsText) {
  onnx::ModelProto model = model_of(std::string(kHeader) + R"(
  net (float[2,3,4,4] x) => (float[2,5] y)
  {
    a = Conv (x, W0)
    b = local.Flat (a)
    y = Gemm <transB = 1> (b, W1)
  }
  <domain: "local", opset_import: ["" : 13]>
  Flat (a) => (b)
  {
    shape = Constant <value = int64[2] {2, 24}> ()
    r = Relu (a)
    b = Reshape (r, shape)
  })");
  add_weight(model, "W0", "6x3x3x3");
  add_weight(model, "W1", "5x24");
  BranchedNetwork net(model);
  const Pruning pruning = net.prune(0.5);
  ASSERT_EQ(pruning.plan.integers.size(), 1U);
  EXPECT_EQ(pruning.plan.integers[0].node, "b") << "what it makes is the call's";
  const onnx::ModelProto small = net.apply(pruning);
  const onnx::FunctionProto& function = small.functions(0);
  ASSERT_EQ(function.node_size(), 3);
  EXPECT_EQ(function.node(0).op_type(), "Constant");
  EXPECT_EQ(function.node(0).attribute(0).t().dims(0), 2);
  EXPECT_EQ(function.node(2).input(1), function.node(0).output(0));
}

TEST(Structure, WhatWouldChangeASharedFunctionStaysWhole) {
  onnx::ModelProto model = model_of(std::string(kHeader) + R"(
  net (float[2,3,4,4] x, float[2,3,4,4] z) => (float[2,5] y, float[2,5] v)
  {
    a = Conv (x, W0)
    b = local.Flat (a)
    y = Gemm <transB = 1> (b, W1)
    c = Conv (z, W2)
    d = Conv (c, W3)
    e = local.Flat (d)
    v = Gemm <transB = 1> (e, W1)
  }
  <domain: "local", opset_import: ["" : 13]>
  Flat (a) => (b)
  {
    shape = Constant <value = int64[2] {2, 24}> ()
    b = Reshape (a, shape)
  })");
  add_weight(model, "W0", "6x3x3x3");
  add_weight(model, "W1", "5x24");
  add_weight(model, "W2", "7x3x3x3");
  add_weight(model, "W3", "6x7x1x1");
  BranchedNetwork net(model);
  const Pruning pruning = net.prune(0.5);
  EXPECT_EQ(cut(pruning.plan), (std::vector<std::string>{"W2", "W3"}));
  const auto& whole = pruning.plan.unpruned_dims;
  EXPECT_TRUE(std::any_of(whole.begin(), whole.end(), [](const UnprunedDim& entry) {
    return entry.axis == "W0[0]" && entry.reason.starts_with("all calls of its function");
  }));
  const onnx::ModelProto small = net.apply(pruning);
  EXPECT_EQ(small.functions(0).SerializeAsString(), model.functions(0).SerializeAsString());
}

/// Gives an attribute of a function, which libonnx may be too old to know of, a default value.
void add_default(onnx::FunctionProto& function, const std::string& name, int64_t value) {
  onnx::AttributeProto attribute;
  attribute.set_name(name);
  attribute.set_type(onnx::AttributeProto::INT);
  attribute.set_i(value);
  const std::string bytes = attribute.SerializeAsString();
  constexpr char kField11 = 11 << 3 | 2;
  const std::string field = std::string{kField11, static_cast<char>(bytes.size())} + bytes;
  ASSERT_TRUE(function.ParseFromString(function.SerializeAsString() + field));
}

TEST(Structure, AttributesOfFunctionsHaveDefaults) {
  onnx::ModelProto model = model_of(std::string(kHeader) + R"(
  net (float[2,3] x) => (float[2,4] y) { h = local.Layer (x, W0)
                                         y = local.Layer <flip = 0> (h, W1) }
  <domain: "local", opset_import: ["" : 13]>
  Layer (x, w) => (y) { y = Gemm <transB : int = @flip> (x, w) })");
  add_default(*model.mutable_functions(0), "flip", 1);
  add_weight(model, "W0", "6x3");
  add_weight(model, "W1", "6x4");
  BranchedNetwork net(model);
  const Pruning pruning = net.prune(0.5);
  EXPECT_EQ(cut(pruning.plan), (std::vector<std::string>{"W0", "W1"}));
  const onnx::ModelProto small = net.apply(pruning);
  EXPECT_EQ(small.functions(0).SerializeAsString(), model.functions(0).SerializeAsString());
}

TEST(Structure, FunctionsThatDoNotEndAreUnknownOperators) {
  onnx::ModelProto model = model_of(std::string(kHeader) + R"(
  net (float[2,3] x) => (float[2,4] y) { h = Gemm <transB = 1> (x, W0)
                                         g = local.Round (h)
                                         y = Gemm <transB = 1> (g, W1) }
  <domain: "local", opset_import: ["" : 13, "local" : 1]>
  Round (a) => (b) { b = local.Trip (a) }
  <domain: "local", opset_import: ["" : 13, "local" : 1]>
  Trip (a) => (b) { b = local.Round (a) })");
  add_weight(model, "W0", "6x3");
  add_weight(model, "W1", "4x6");
  BranchedNetwork net(model);
  EXPECT_EQ(net.graph.nodes.size(), 3U);
  EXPECT_TRUE(net.prune(0.5).plan.empty());
}

TEST(Structure, ABlockGoesAlthoughABranchReadsItsSum) {
  onnx::ModelProto model = model_of(R"(net (float[2,4] x, bool p) => (float[2,4] y)
  {
    h = Gemm <transB = 1> (x, W0)
    r = Relu (h)
    f = Gemm <transB = 1> (r, W1)
    sum = Add (x, f)
    y = If (p) <then_branch = t () => (float[2,4] u) { u = Relu (sum) },
                else_branch = e () => (float[2,4] v) { v = Neg (sum) }>
  })");
  add_weight(model, "W0", "6x4");
  add_weight(model, "W1", "4x6");
  BranchedNetwork net(model);
  PruneRequest request;
  PruneServices services;
  request.depth = DepthRequest{.count = 1};
  services.influence = [](const Graph&, const std::vector<ResidualBlock>& blocks) {
    return std::vector<double>(blocks.size(), 0);
  };
  Shorthand keep_all;
  keep_all.ratio = 0;
  request.config = from_shorthand(keep_all);
  const DepthPruning deep = plan_depth(net.graph, request, services);
  ASSERT_EQ(deep.pruning.plan.blocks.size(), 1U);
  onnx_io::OnnxEditor editor(*net.file);
  replay(deep.pruning.plan, editor);
  net.file->write(net.folder / "small.onnx");
  onnx::ModelProto small;
  small.ParseFromString(read_file(net.folder / "small.onnx"));
  onnx::checker::check_model(small);
  ASSERT_EQ(small.graph().node_size(), 1);
  EXPECT_EQ(small.graph().node(0).attribute(1).g().node(0).input(0), "x");
  EXPECT_EQ(small.graph().initializer_size(), 0);
}

}  // namespace
}  // namespace parsimony::test
