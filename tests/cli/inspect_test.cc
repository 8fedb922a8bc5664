#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/cli/command.h"

namespace parsimony::test {
namespace {

using Json = nlohmann::json;

TEST(CliInspect, PrintsATable) {
  const Outcome outcome = Workplace().run("inspect cnn.onnx");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out,
            R"(node   operator           weights          output        params    MACs  groups
c1     Conv               [8, 3, 3, 3] +1  [1, 8, 8, 8]     224  13,824  - -> g0
relu   Relu                                [1, 8, 8, 8]                  g0
c2     Conv               [6, 8, 3, 3]     [1, 6, 8, 8]     432  27,648  g0 -> g1
pool   GlobalAveragePool                   [1, 6, 1, 1]                  g1
flat   Flatten                             [1, 6]                        g1
fc     Gemm               [5, 6]           [1, 5]            30      30  g1 -> -
-----  -----------------  ---------------  ------------  ------  ------  --------
total                                                       686  41,502  2 groups

input  type     shape          data besides npz:FILE
x      float32  [-1, 3, 8, 8]  images:DIR

MACs are counted for x[1, 3, 8, 8] (assumed).
)");
}

TEST(CliInspect, MacsFollowTheInput) {
  const Workplace place;
  const auto macs = [&](const std::string& options) {
    return Json::parse(place.run("inspect cnn.onnx --json" + options).out).at("totals").at("macs");
  };
  EXPECT_EQ(macs(" --input 1x3x8x8"), 83004 / 2);
  EXPECT_EQ(macs(" --input 6x3x8x8"), 83004 * 3);
  EXPECT_EQ(lines_with(place.run("inspect cnn.onnx --input 1x3x8x8").out, "MACs"),
            "MACs are counted for x[1, 3, 8, 8].\n");
}

TEST(CliInspect, SaysWhatMacsLeaveOut) {
  const Workplace place;
  onnx::ModelProto model;
  ASSERT_TRUE(model.ParseFromString(place.bytes("cnn.onnx")));
  model.mutable_graph()->mutable_node(1)->set_op_type("Mystery");
  place.write("odd.onnx", model.SerializeAsString());
  const std::string line =
      "They exclude 3 nodes with unknown multiply-adds: relu (Mystery), c2 (Conv), fc "
      "(Gemm).\n";
  EXPECT_EQ(lines_with(place.run("inspect odd.onnx").out, "They exclude"), line);
  const Outcome pruned = place.run("prune odd.onnx -o small.onnx --ratio 0.5 --report report.json");
  EXPECT_EQ(lines_with(pruned.out, "They exclude"), line) << pruned.err;
  const Json left_out = Json::parse(place.bytes("report.json")).at("macs").at("uncounted");
  EXPECT_EQ(left_out, Json::array({"relu (Mystery)", "c2 (Conv)", "fc (Gemm)"}));
}

TEST(CliInspect, JsonHasEveryNode) {
  const Outcome outcome = Workplace().run("inspect '" + mnist() + "' --json");
  const Json document = Json::parse(outcome.out);
  EXPECT_EQ(document.at("parsimony_inspect"), 1);
  int64_t params = 0;
  for (const Json& node : document.at("nodes")) params += node.at("params").get<int64_t>();
  EXPECT_EQ(document.at("totals").at("params"), params);
  EXPECT_EQ(document.at("totals").at("groups"), 4);
  EXPECT_EQ(document.at("nodes").at(0).at("groups_out"), Json::array({"g0"}));
}

TEST(CliInspect, NamesThatAreNotTextDoNoHarm) {
  const Workplace place;
  onnx::ModelProto model;
  ASSERT_TRUE(model.ParseFromString(place.bytes("cnn.onnx")));
  model.mutable_graph()->mutable_node(0)->set_name("a\033[31m\n\xff");
  place.write("odd.onnx", model.SerializeAsString());
  const Outcome text = place.run("inspect odd.onnx");
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_EQ(text.out.find('\033'), std::string::npos);
  EXPECT_NO_THROW(Json::parse(place.run("inspect odd.onnx --json").out));
}

}  // namespace
}  // namespace parsimony::test
