// An operator is one row: with it alone, all rooms treat the operator right.
#include <gtest/gtest.h>

#include "parsimony/graph/infer.h"
#include "parsimony/graph/operators/linear_form.h"
#include "parsimony/masks/coupling.h"
#include "parsimony/masks/slice_values.h"
#include "parsimony/pruners/elements/contraction.h"
#include "parsimony/pruners/layers.h"
#include "tests/graph/builder.h"

namespace parsimony {
namespace {

constexpr int64_t kIn = 4;
constexpr int64_t kHidden = 6;

/// A layer [out, in] over the last axis, whatever stands before it: no operator of ONNX is that.
void add_once() {
  if (find_schema("com.example", "Dense") != nullptr) return;
  add_operator({.op = "Dense",
                .line = "x[..a i] w[o i] b[o]? -> y[..a o] ; macs w y",
                .zero = ZeroBehaviour::kProduct,
                .linear = {.kind = LinearKind::kMatrixProduct,
                           .weights = 1U << 1,
                           .bias = 2,
                           .layer = "Dense"},
                .domain = "com.example"});
}

/// x -> Dense -> Relu -> Dense -> y
struct OwnLayers {
  test::Builder b;
  ValueId x = b.input("x", {2, kIn});
  ValueId w1 = b.floats("w1", {kHidden, kIn});
  ValueId b1 = b.floats("b1", {kHidden});
  ValueId w2 = b.floats("w2", {3, kHidden});
  ValueId hidden = kNone;
  ValueId y = kNone;

  OwnLayers() {
    add_once();
    hidden = layer("first", {x, w1, b1});
    y = layer("second", {b.node("Relu", {hidden}, "relu"), w2});
    b.output(y);
    b.graph.value(y).is_output = true;
    b.graph.value(x).is_input = true;
    finish(b.graph);
  }

  NodeId first() const { return b.graph.value(hidden).producer; }

  ValueId layer(const std::string& name, const std::vector<ValueId>& inputs) {
    const ValueId output = b.node("Dense", inputs, name);
    b.graph.nodes.back().domain = "com.example";
    return output;
  }
};

TEST(OwnOperator, IsCoupledByItsLine) {
  const OwnLayers net;
  const Facts facts = infer(net.b.graph);
  const Coupling coupling = couple(net.b.graph, facts);
  ASSERT_EQ(coupling.groups.size(), 1U);
  const Group& group = coupling.groups[GroupId(0)];
  EXPECT_EQ(group.size, kHidden);
  EXPECT_TRUE(group.zero);
  EXPECT_FALSE(group.mixes);
  std::vector<std::string> members;
  for (const Member& member : group.members) {
    members.push_back(net.b.graph.value(member.value).name + "." + std::to_string(member.axis) +
                      " " + std::string(name_of(member.role)));
  }
  EXPECT_EQ(members, (std::vector<std::string>{"w1.0 out", "b1.0 out", "w2.1 in"}));
  EXPECT_EQ(macs(NodeView(net.b.graph, net.b.graph.node(net.first()), facts)), 2 * kHidden * kIn);
}

TEST(OwnOperator, IsALayer) {
  const OwnLayers net;
  const Layers layers(net.b.graph);
  EXPECT_TRUE(layers.contains(net.first()));
  EXPECT_EQ(layers.weights(net.first()), std::vector<ValueId>{net.w1});
}

TEST(OwnOperator, HasALinearFormFromItsLine) {
  const OwnLayers net;
  const NodeId first = net.first();
  const auto form = linear_form(net.b.graph.node(first), 1, 2);
  ASSERT_TRUE(form);
  EXPECT_EQ(form->data, 0);
  EXPECT_EQ(form->bias, 2);
  EXPECT_EQ(form->in_axis, 1);
  EXPECT_EQ(form->out_axis, 0);
  EXPECT_TRUE(form->kernel.empty());
  EXPECT_FALSE(linear_form(net.b.graph.node(first), 2, 1));  // a bias
  EXPECT_FALSE(linear_form(net.b.graph.node(first), 1, 3));

  const auto contraction = elements::contraction_of(net.b.graph, first, net.w1);
  ASSERT_TRUE(contraction);
  EXPECT_EQ(contraction->input, 1);
  EXPECT_EQ(contraction->outputs, std::vector<int>{0});
}

TEST(OwnOperator, HandsZerosOn) {
  const OwnLayers net;
  std::vector<uint8_t> rows(kHidden * kIn, 1);
  std::fill(rows.begin(), rows.begin() + kIn, uint8_t{0});
  std::vector<uint8_t> biases(kHidden, 1);
  biases[0] = 0;
  const std::vector<ElementMask> masks = {{"w1", {kHidden, kIn}, rows}, {"b1", {kHidden}, biases}};
  const SliceValues contents = propagate_slice_values(net.b.graph, infer(net.b.graph), masks);
  const auto& hidden = contents[net.hidden];
  ASSERT_EQ(hidden.size(), 2U);
  EXPECT_EQ(hidden[1][0], SliceValue::kZero);
  EXPECT_EQ(hidden[1][1], SliceValue::kVaries);
}

}  // namespace
}  // namespace parsimony
