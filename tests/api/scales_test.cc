// Numbers that encode a pruned size: found, kept, and made to follow where that is asked for.
#include "parsimony/speedup/scales.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "parsimony/api/prune.h"
#include "parsimony/base/errors.h"
#include "parsimony/base/files.h"
#include "parsimony/onnx_io/editor.h"
#include "parsimony/onnx_io/reader.h"
#include "tests/support/fixture.h"

namespace parsimony::test {
namespace {

/// A fixture of tests/operators, pruned by half.
class Scaled {
 public:
  explicit Scaled(const std::string& name, bool rescale = false, bool exact = false)
      : fixture_(read_fixture("tests/operators/" + name + ".txt")) {
    write_file(folder_ / "m.onnx", fixture_.model.SerializeAsString());
    onnx_io::ModelFile file(folder_ / "m.onnx");
    graph = onnx_io::to_graph(file);
    PruneRequest request = from_shorthand({.ratio = 0.5});
    request.granularity = parse_granularity(fixture_.granularity, name);
    request.rescale = rescale;
    if (exact) request.constants = Constants::kExact;
    pruning = plan_pruning(graph, request);
    small = applied(pruning.plan);
  }

  std::string applied(const Plan& plan) {
    onnx_io::ModelFile file(folder_ / "m.onnx");
    onnx_io::OnnxEditor editor(file);
    apply_plan(plan, onnx_io::to_graph(file), pruning.analysis.probe, editor);
    file.write(folder_ / "s.onnx");
    return read_file(folder_ / "s.onnx");
  }

  /// "OPERATOR: 1/sqrt(8) -> 1/sqrt(4)" of each.
  std::vector<std::string> found() const {
    std::vector<std::string> texts;
    for (const CutScale& cut : pruning.scales) {
      texts.push_back(graph.node(cut.scale.node).op + ": " + formula(cut.scale, cut.scale.size) +
                      " -> " + formula(cut.scale, cut.kept));
      const double expected = std::pow(static_cast<double>(cut.kept), cut.scale.exponent);
      EXPECT_NEAR(cut.would_be.number(0), expected, 1e-3 * expected);
    }
    return texts;
  }

  Graph graph;
  Pruning pruning;
  std::string small;

 private:
  Fixture fixture_;
  TemporaryFolder folder_;
};

using Texts = std::vector<std::string>;

/// Attribute `name` of the first node of this operator; 0 if there is none.
float attribute(const std::string& bytes, const std::string& op, const std::string& name) {
  onnx::ModelProto model;
  EXPECT_TRUE(model.ParseFromString(bytes));
  for (const auto& node : model.graph().node()) {
    if (node.op_type() != op) continue;
    for (const auto& a : node.attribute()) {
      if (a.name() == name) return a.f();
    }
  }
  return 0;
}

TEST(Scales, AreFoundWhereNetworksHaveThem) {
  EXPECT_EQ(Scaled("scale_literal").found(),
            (Texts{"Mul: 1/sqrt(8) -> 1/sqrt(4)", "Mul: 1/sqrt(8) -> 1/sqrt(4)"}));
  EXPECT_EQ(Scaled("scale_both_sides").found(),
            (Texts{"Div: 8^1/4 -> 4^1/4", "Mul: 8^-1/4 -> 4^-1/4"}));
  EXPECT_EQ(Scaled("scale_mean").found(), (Texts{"Mul: 1/12 -> 1/6", "Div: 12 -> 6"}));
  EXPECT_EQ(Scaled("scale_embedding").found(), (Texts{"Mul: sqrt(16) -> sqrt(8)"}));
  EXPECT_EQ(Scaled("scale_float16").found(), (Texts{"Mul: 1/sqrt(12) -> 1/sqrt(6)"}));
  EXPECT_EQ(Scaled("scale_fused").found(), (Texts{"FusedMatMul: 1/sqrt(12) -> 1/sqrt(6)"}));
  EXPECT_EQ(Scaled("attention_scale_given").found(), (Texts{"Attention: 1/sqrt(6) -> 1/sqrt(3)"}));
}

TEST(Scales, ThatAnOperatorImpliesOrAShapeGivesAreAmongThem) {
  EXPECT_EQ(Scaled("attention").found(), (Texts{"Attention: 1/sqrt(6) -> 1/sqrt(3)"}));
  EXPECT_EQ(Scaled("ms_multi_head_attention").found(),
            (Texts{"MultiHeadAttention: 1/sqrt(6) -> 1/sqrt(3)"}));
  EXPECT_EQ(Scaled("ms_attention_head_dim").found(), (Texts{"Attention: 1/sqrt(6) -> 1/sqrt(3)"}));
  EXPECT_EQ(Scaled("attention_scale_from_shape").found(), (Texts{"Div: sqrt(4) -> sqrt(2)"}));
}

TEST(Scales, NoOtherNumberIsOne) {
  // The size of a head stays where heads go; a mean over space, and one whose N is computed.
  for (const char* name : {"attention_head", "ms_multi_head_attention_head", "gelu_decomposed",
                           "gelu_tanh", "shape_mean", "layer_norm_decomposed", "mul_const"}) {
    EXPECT_EQ(Scaled(name).found(), Texts{}) << name;
  }
}

TEST(Scales, KeepTheirValueUnlessAskedFor) {
  const Scaled literal("scale_literal");
  EXPECT_TRUE(literal.pruning.plan.scales.empty());
  EXPECT_EQ(literal.pruning.plan.to_json().find("scales"), std::string::npos);
  const Scaled implied("attention");
  EXPECT_FLOAT_EQ(attribute(implied.small, "Attention", "scale"), 1 / std::sqrt(6.0F));
}

TEST(Scales, FollowWhereAskedFor) {
  EXPECT_FLOAT_EQ(attribute(Scaled("attention", true).small, "Attention", "scale"),
                  1 / std::sqrt(3.0F));
  EXPECT_FLOAT_EQ(attribute(Scaled("attention_scale_given", true).small, "Attention", "scale"),
                  1 / std::sqrt(3.0F));
  EXPECT_FLOAT_EQ(attribute(Scaled("scale_fused", true).small, "FusedMatMul", "alpha"),
                  1 / std::sqrt(6.0F));
}

TEST(Scales, OfASharedConstantEachReaderGetsItsOwn) {
  Scaled net("scale_literal", true);
  ASSERT_EQ(net.pruning.plan.scales.size(), 2U);
  net.pruning.plan.scales.pop_back();
  onnx::ModelProto model;
  ASSERT_TRUE(model.ParseFromString(net.applied(net.pruning.plan)));
  std::map<std::string, std::string> reads;
  for (const auto& node : model.graph().node()) {
    if (node.op_type() == "Mul") reads[node.output(0)] = node.input(1);
  }
  EXPECT_EQ(reads.at("e1"), "c");
  EXPECT_NE(reads.at("t"), "c");
}

TEST(Scales, ReplayFromTheFileGivesTheSameBytes) {
  for (const char* name :
       {"scale_literal", "scale_both_sides", "scale_mean", "scale_embedding", "scale_float16",
        "scale_fused", "attention", "attention_scale_given", "attention_scale_from_shape"}) {
    Scaled net(name, true);
    ASSERT_FALSE(net.pruning.plan.scales.empty()) << name;
    const Plan again = Plan::from_json(net.pruning.plan.to_json(), "p.json");
    EXPECT_EQ(again, net.pruning.plan) << name;
    EXPECT_EQ(net.applied(again), net.small) << name;
    EXPECT_NE(net.small, Scaled(name).small) << name;
  }
}

TEST(Scales, TheReferenceHasThemToo) {
  const Scaled net("scale_literal", true);
  const Plan changes = reference_changes(net.pruning.plan);
  EXPECT_EQ(changes.scales, net.pruning.plan.scales);
  EXPECT_TRUE(changes.groups.empty());
}

TEST(Scales, DoNotGoWithExactConstants) {
  EXPECT_THROW(Scaled("scale_literal", true, true), UnsupportedError);
}

TEST(Scales, OfAPlanAreOneNumberEach) {
  std::string text = Scaled("scale_literal", true).pruning.plan.to_json();
  const size_t at = text.find("\"to\": ", text.find("\"scales\""));
  ASSERT_NE(at, std::string::npos);
  text.replace(at, text.find('}', at) + 1 - at, "\"to\": [4]");
  try {
    Plan::from_json(text, "p.json");
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(),
                 "p.json: scales[0].to: found a list, expected one floating point number");
  }
}

}  // namespace
}  // namespace parsimony::test
