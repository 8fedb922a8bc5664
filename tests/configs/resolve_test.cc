#include <gtest/gtest.h>

#include "parsimony/base/errors.h"
#include "parsimony/configs/config.h"
#include "tests/graph/builder.h"

namespace parsimony {
namespace {

using State = LayerSetting::State;
using test::Builder;

/// Two convolutions, an activation and two linear layers, named as torch's exporter does.
struct Network {
  Builder b;

  Network() {
    const ValueId x = b.input("x", {1, 3, 8, 8});
    ValueId y = b.node("Conv", {x, b.floats("layer1.0.conv1.weight", {4, 3, 3, 3})}, "y1");
    y = b.node("Relu", {y}, "relu");
    y = b.node("Conv", {y, b.floats("onnx::Conv_7", {4, 4, 3})}, "y2");
    y = b.node("Gemm", {y, b.floats("fc.weight", {10, 4})}, "y3");
    b.node("MatMul", {y, b.floats("onnx::MatMul_9", {10, 2})}, "y4");
    b.graph.nodes[NodeId(0)].name = "/layer1/layer1.0/conv1/Conv";
    b.graph.nodes[NodeId(2)].name = "/layer1/layer1.0/conv2/Conv";
    b.graph.nodes[NodeId(3)].name = "";
    b.graph.nodes[NodeId(4)].name = "/head/MatMul";
    finish(b.graph);
  }

  Settings resolve(std::string_view json) const {
    return parsimony::resolve(parse_config(json, "c.json"), b.graph);
  }

  /// One letter per node: p(runed), x (excluded), - (unnamed).
  std::string states(std::string_view json) const {
    std::string text;
    for (const LayerSetting& layer : resolve(json).layers) {
      text += layer.state == State::kPruned ? 'p' : layer.state == State::kExcluded ? 'x' : '-';
    }
    return text;
  }

  std::string error_of(std::string_view json) const {
    try {
      resolve(json);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "no error";
  }
};

std::string entry(const std::string& selectors) {
  return "[{" + selectors + ", \"sparse_ratio\": 0.5}]";
}

TEST(Resolve, SelectsAllLayersByDefault) {
  EXPECT_EQ(Network().states(R"([{"sparse_ratio": 0.5}])"), "p-ppp");
  EXPECT_EQ(Network().states(entry(R"("op_types": ["default"])")), "p-ppp");
}

TEST(Resolve, KnowsBothFamiliesOfTypes) {
  const Network net;
  EXPECT_EQ(net.states(entry(R"("op_types": ["Conv"])")), "p-p--");
  EXPECT_EQ(net.states(entry(R"("op_types": ["Conv2d"])")), "p----");
  EXPECT_EQ(net.states(entry(R"("op_types": ["Conv1d"])")), "--p--");
  EXPECT_EQ(net.states(entry(R"("op_types": ["Linear"])")), "---pp");
  EXPECT_EQ(net.states(entry(R"("op_types": ["Gemm"])")), "---p-");
  EXPECT_EQ(net.states(entry(R"("op_types": ["Conv2d", "MatMul"])")), "p---p");
}

TEST(Resolve, KnowsALayerByEachOfItsNames) {
  const Network net;
  for (const char* name :
       {"/layer1/layer1.0/conv1/Conv", "y1", "layer1.0.conv1", "layer1.0.conv1.weight"}) {
    EXPECT_EQ(net.states(entry("\"op_names\": [\"" + std::string(name) + "\"]")), "p----") << name;
  }
  EXPECT_EQ(net.states(entry(R"("op_names": ["layer1.0.conv2", "fc", "head"])")), "--ppp");
}

TEST(Resolve, MatchesPatternsFromTheStart) {
  const Network net;
  EXPECT_EQ(net.states(entry(R"("op_names_re": ["layer1\\.[0-9]+\\.conv"])")), "p-p--");
  EXPECT_EQ(net.states(entry(R"("op_names_re": ["conv|fc"])")), "---p-");
  EXPECT_EQ(net.states(entry(R"("op_names_re": [".*conv2"])")), "--p--");
}

TEST(Resolve, NamesMayBePatternsOfWholeNames) {
  const Network net;
  EXPECT_EQ(net.states(entry(R"("op_names": ["layer1.*"])")), "p-p--");
  EXPECT_EQ(net.states(entry(R"("op_names": ["*.conv?"])")), "p-p--");
  EXPECT_EQ(net.states(entry(R"("op_names": ["*conv2", "f?"])")), "--pp-");
  EXPECT_EQ(net.states(entry(R"("exclude_op_names": ["layer1.*.conv2*"])")), "p-xpp");
  EXPECT_EQ(net.states(R"([{"sparse_ratio": 0.5}, {"op_names": ["*"], "exclude": true}])"),
            "x-xxx");
  EXPECT_EQ(net.error_of(entry(R"("op_names": ["conv*"])")),
            "c.json: config_list[0].op_names[0]: pattern \"conv*\" matches no layer of this "
            "network");
}

TEST(Resolve, ANameIsLookedUpBeforeItIsAPattern) {
  Network net;
  net.b.graph.nodes[NodeId(0)].name = "f*";
  EXPECT_EQ(net.states(entry(R"("op_names": ["f*"])")), "p----");
}

TEST(Resolve, IntersectsTypesWithNamesOrPatterns) {
  const Network net;
  EXPECT_EQ(net.states(entry(R"("op_types": ["Conv"], "op_names": ["layer1.0.conv1", "fc"])")),
            "p----");
  EXPECT_EQ(net.states(entry(R"("op_names": ["fc"], "op_names_re": ["head"])")), "---pp");
}

TEST(Resolve, ExcludesSubtract) {
  const Network net;
  EXPECT_EQ(net.states(entry(R"("exclude_op_types": ["Linear"])")), "p-pxx");
  EXPECT_EQ(net.states(entry(R"("op_types": ["Conv"], "exclude_op_names": ["layer1.0.conv2"])")),
            "p-x--");
  EXPECT_EQ(net.states(entry(R"("exclude_op_names_re": ["layer1"])")), "x-xpp");
}

TEST(Resolve, LaterEntriesOverride) {
  const Network net;
  EXPECT_EQ(net.states(R"([{"sparse_ratio": 0.5}, {"op_names": ["fc"], "exclude": true}])"),
            "p-pxp");
  EXPECT_EQ(net.states(R"([{"op_names": ["fc"], "exclude": true}, {"sparse_ratio": 0.5}])"),
            "p-ppp");
  const Settings settings = net.resolve(
      R"([{"op_types": ["Conv"], "exclude": true}, {"op_types": ["Linear"], "sparse_ratio": 0.5},
          {"op_names": ["fc"], "sparse_ratio": 0.2}])");
  ASSERT_EQ(settings.requests.size(), 2U);
  EXPECT_EQ(settings.requests[1].entry, 2);
  EXPECT_EQ(settings.layers[NodeId(3)].request, 1);
  EXPECT_EQ(settings.layers[NodeId(4)].request, 0);
}

TEST(Resolve, AnotherEntryMaySelectWhatOneExcludes) {
  EXPECT_EQ(Network().states(R"([{"op_names": ["fc"], "sparse_ratio": 0.5},
                                 {"exclude_op_names": ["fc"], "sparse_ratio": 0.5}])"),
            "p-ppp");
}

TEST(Resolve, NamesTypesThatMatchNothing) {
  const Network net;
  EXPECT_EQ(
      net.error_of(R"([{"sparse_ratio": 0.1}, {"op_types": ["Conv", "Conv2D"], "exclude": true}])"),
      "c.json: config_list[1].op_types[1]: unknown op type \"Conv2D\". Did you mean "
      "\"Conv2d\"?");
  EXPECT_EQ(net.error_of(entry(R"("exclude_op_types": ["LSTM"])")),
            "c.json: config_list[0].exclude_op_types[0]: this network has no layer of type "
            "\"LSTM\"; it has \"Conv\", \"Gemm\" and \"MatMul\"");
}

TEST(Resolve, NamesNamesThatMatchNothing) {
  const Network net;
  EXPECT_EQ(net.error_of(entry(R"("op_names": ["layer1.0.conv3"])")),
            "c.json: config_list[0].op_names[0]: this network has no layer \"layer1.0.conv3\". Did "
            "you mean \"layer1.0.conv1\" or \"layer1.0.conv2\"?");
  EXPECT_EQ(
      net.error_of(entry(R"("exclude_op_names": ["relu"])")),
      "c.json: config_list[0].exclude_op_names[0]: \"relu\" is a Relu, which is not pruned by "
      "itself; name the layers around it");
  EXPECT_EQ(net.error_of(entry(R"("op_names_re": ["conv"])")),
            "c.json: config_list[0].op_names_re[0]: pattern \"conv\" matches no layer of this "
            "network");
  EXPECT_EQ(net.error_of(entry(R"("op_types": ["Conv"], "op_names": ["fc"])")),
            "c.json: config_list[0]: no layer is selected; types and names must hold for the same "
            "layer");
}

TEST(Resolve, NamesPatternsThatAreNone) {
  const Network net;
  const auto of = [&](const std::string& pattern) {
    return net.error_of(entry("\"op_names_re\": [\"" + pattern + "\"]"));
  };
  EXPECT_EQ(of("(a"), "c.json: config_list[0].op_names_re[0]: pattern \"(a\": missing ): (a");
  EXPECT_EQ(of("[a"), "c.json: config_list[0].op_names_re[0]: pattern \"[a\": missing ]: [a");
  EXPECT_EQ(of("(a)\\\\1"),
            "c.json: config_list[0].op_names_re[0]: pattern \"(a)\\1\": "
            "invalid escape sequence: \\1");
  const std::string too_large = "c.json: config_list[0].op_names_re[0]: pattern \"";
  EXPECT_EQ(of("((a?){300}){300}"),
            too_large + "((a?){300}){300}\": invalid repetition size: {300}");
  EXPECT_EQ(of(std::string(50, '(')),
            too_large + std::string(40, '(') + "…\": missing ): " + std::string(50, '('));
}

TEST(Resolve, HostilePatternsEnd) {
  Network net;
  net.b.graph.nodes[NodeId(0)].name = std::string(2000, 'a');
  EXPECT_EQ(net.states(entry(R"("op_names_re": ["(a+)+$"])")), "p----");
  std::string stars = "a";
  for (int i = 0; i < 200; ++i) stars += "*a";
  EXPECT_EQ(net.states(entry(R"("op_names": [")" + stars + R"("])")), "p----");
  EXPECT_EQ(net.states(entry(R"("op_names": [")" + stars + R"(*b", "fc"])")), "---p-");
  EXPECT_EQ(net.states(entry(R"-("op_names_re": ["((a+)+b|f)"])-")), "---p-");
  net.states(
      entry("\"op_names_re\": [\"" + std::string(400, '(') + "f" + std::string(400, ')') + "\"]"));
  net.states(entry(R"-("op_names_re": ["((a?b?c?d?){100}f)"])-"));
  const std::string overflows = "\\\\" + std::string(200, '4');
  EXPECT_THROW(net.states(entry("\"op_names_re\": [\"" + overflows + "\"]")), ConfigError);
}

TEST(Resolve, NamesOptionsOfTheCommandLine) {
  const Network net;
  const auto error_of = [&](const Shorthand& shorthand) -> std::string {
    try {
      resolve(from_shorthand(shorthand), net.b.graph);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_EQ(error_of({.ratio = 0.5}), "no error");
  EXPECT_EQ(error_of({.op_types = {"conv2d"}}),
            "--op-types: unknown op type \"conv2d\". Did you mean \"Conv2d\"?");
  EXPECT_EQ(error_of({.exclude = {"fd"}}),
            "--exclude: this network has no layer \"fd\". Did you mean \"fc\"?");
}

TEST(Resolve, IgnoresUnknownNamesBesideKnownOnes) {
  const Network net;
  const char* const json = R"([{"op_names": ["fc", "fd"], "sparse_ratio": 0.5}])";
  EXPECT_EQ(net.states(json), "---p-");
  EXPECT_EQ(
      net.resolve(json).notes,
      (std::vector<std::string>{
          "c.json: config_list[0].op_names[1]: this network has no layer \"fd\". Did you mean "
          "\"fc\"? The name is ignored."}));
  EXPECT_EQ(net.error_of(R"([{"op_names": ["fd"], "sparse_ratio": 0.5}])"),
            "c.json: config_list[0].op_names[0]: this network has no layer \"fd\". Did you mean "
            "\"fc\"?");
  EXPECT_EQ(net.error_of(R"([{"sparse_ratio": 0.5}, {"op_names": ["fc", "fd"], "exclude": true}])"),
            "c.json: config_list[1].op_names[1]: this network has no layer \"fd\". Did you mean "
            "\"fc\"?");
}

TEST(Resolve, FindsPartsOfNames) {
  const Network net;
  EXPECT_EQ(net.states(entry(R"("op_partial_names": ["conv"])")), "p-p--");
  EXPECT_EQ(net.states(entry(R"("op_partial_names": ["onv1", "ead"])")), "p---p");
  EXPECT_EQ(net.states(entry(R"("op_names": ["fc"], "op_partial_names": ["conv2"])")), "--pp-");
  EXPECT_EQ(
      net.states(R"([{"sparse_ratio": 0.5}, {"op_partial_names": ["1.0"], "exclude": true}])"),
      "x-xpp");
  EXPECT_EQ(net.error_of(entry(R"("op_partial_names": ["conv", ".*"])")),
            "c.json: config_list[0].op_partial_names[1]: no layer has \".*\" in its name");
}

TEST(Resolve, FindsTheLayerToAlignWith) {
  const Network net;
  const Settings settings = net.resolve(R"([{"op_names": ["fc"], "sparse_ratio": 0.5},
      {"op_names": ["head"], "align": {"module_name": "fc"}}])");
  EXPECT_EQ(settings.requests.at(1).aligned_with, NodeId(3));
  EXPECT_EQ(net.error_of(R"([{"op_names": ["head"], "align": {"module_name": "fd"}}])"),
            "c.json: config_list[0].align.module_name: this network has no layer \"fd\". Did you "
            "mean \"fc\"?");
  EXPECT_EQ(net.error_of(R"([{"op_names": ["head"], "align": {"module_name": "relu"}}])"),
            "c.json: config_list[0].align.module_name: \"relu\" is a Relu, which is not pruned by "
            "itself; name the layers around it");
}

TEST(Resolve, RemembersTheEntryThatDecided) {
  const Settings settings = Network().resolve(
      R"([{"sparse_ratio": 0.5, "exclude_op_names": ["head"]}, {"op_names": ["fc"],
          "exclude": true}])");
  EXPECT_EQ(settings.layers[NodeId(0)].entry, 0);
  EXPECT_EQ(settings.layers[NodeId(1)].entry, kNone);
  EXPECT_EQ(settings.layers[NodeId(3)].entry, 1);
  EXPECT_EQ(settings.layers[NodeId(4)].entry, 0);
}

TEST(Resolve, ANetworkWithoutLayersHasNothingToPrune) {
  Builder b;
  b.node("Relu", {b.input("x", {1})}, "y");
  finish(b.graph);
  const Settings settings = resolve(from_shorthand({.ratio = 0.5}), b.graph);
  EXPECT_EQ(settings.layers[NodeId(0)].state, State::kUnnamed);
}

}  // namespace
}  // namespace parsimony
