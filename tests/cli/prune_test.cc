#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "parsimony/masks/mask.h"
#include "parsimony/masks/tensor_file.h"
#include "parsimony/speedup/plan.h"
#include "tests/cli/command.h"
#include "tests/support/same_bytes.h"

namespace parsimony::test {
namespace {

using Json = nlohmann::json;

TEST(CliPrune, PrintsWhatBecameSmaller) {
  const Workplace place;
  const Outcome outcome = place.run("prune cnn.onnx -o o.onnx --ratio 0.5 --plan p.json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  // 216+8+432+30 parameters before, 108+4+108+15 after.
  EXPECT_EQ(lines_with(outcome.out, "parameters"), "parameters      686     235  34.3%\n")
      << outcome.out;
  EXPECT_NE(outcome.out.find("2 of 2 groups pruned, 7 of 14 channels kept.\n"), std::string::npos)
      << outcome.out;
  const bool proven = !lines_with(outcome.out, "Proven: largest difference ").empty();
  EXPECT_NE(proven, !lines_with(outcome.out, "Not proven: ").empty()) << outcome.out;
  EXPECT_TRUE(proven || !kHasTorch) << outcome.out;
}

TEST(CliPrune, FitsAnAmount) {
  const Workplace place;
  const Outcome outcome =
      place.run("prune cnn.onnx -o o.onnx --budget params=400 --scope global --report r.json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json report = Json::parse(place.bytes("r.json"));
  const auto params = report.at("params").at("after").get<int64_t>();
  EXPECT_LE(params, 400);
  // Of c1 a channel is 27+1 parameters and nine for each of c2's, of c2 nine for each and 5.
  EXPECT_GT(params, 400 - 28 - 9 * 6);
  const Outcome too_few = place.run("prune cnn.onnx -o o.onnx --budget params=10");
  EXPECT_EQ(lines_with(too_few.out, "note: asked for at most 10 parameters: no fewer than "),
            "note: asked for at most 10 parameters: no fewer than 42 can be reached\n")
      << too_few.out;
}

TEST(CliPrune, LessThanAThousandthIsForced) {
  const Workplace place;
  const auto pruned = [&](const std::string& options) {
    return place.run("prune cnn.onnx --no-verify -o o.onnx " + options);
  };
  const std::string end = " Such a cut has to be forced: --force, or force=True in Python\n";
  EXPECT_EQ(pruned("--budget macs=25").err,
            "parsimony: budget macs=25: less than a thousandth of the 41502 MACs that the network "
            "has. Did you mean macs=25%?" +
                end);
  EXPECT_EQ(pruned("--budget params=0.6").err,
            "parsimony: budget params=0.6: less than a thousandth of the 686 parameters that the "
            "network has. Did you mean params=0.6%?" +
                end);
  EXPECT_EQ(pruned("--ratio 0.9995").err,
            "parsimony: 0.05% may remain: less than a thousandth." + end);
  // On both sides of the thousandth: 41.502 MACs.
  const std::string below = std::to_string(41502.0 / 1001);
  const std::string above = std::to_string(41502.0 / 999);
  EXPECT_EQ(pruned("--budget macs=" + below).code, 2);
  EXPECT_EQ(pruned("--budget macs=" + above).code, 0);
  EXPECT_EQ(pruned("--force --budget macs=" + below).code, 0);
  EXPECT_EQ(pruned("--budget macs=0.0999%").code, 2);
  EXPECT_EQ(pruned("--budget macs=0.1001%").code, 0);
  EXPECT_EQ(pruned("--budget macs=50%,file=2").code, 2) << "of several each";
  EXPECT_EQ(pruned("--ratio 0.999").code, 0);
  place.write("c.json", R"({"budget": {"macs": 25}, "config_list": [{"op_types": ["Conv"]}]})");
  EXPECT_EQ(pruned("--config c.json").code, 2);
  EXPECT_EQ(pruned("--config c.json --force").code, 0);
  place.write("f.json", R"({"budget": {"macs": 25}, "force": true,
                            "config_list": [{"op_types": ["Conv"]}]})");
  EXPECT_EQ(pruned("--config f.json").code, 0);
}

TEST(CliPrune, CriteriaByDataAskForThem) {
  const Workplace place;
  const Outcome outcome = place.run("prune cnn.onnx -o o.onnx --ratio 0.5 --criterion taylor");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.err,
            "parsimony: criterion \"taylor\" needs data that runs through the network, and there "
            "is none: give --calibration DATA, for example --calibration cifar10:DIR; in a "
            "program, PruneServices::measure\n");
  EXPECT_EQ(place.run("prune cnn.onnx -o o.onnx --ratio 0.5 --criterion movement").err,
            "parsimony: criterion \"movement\" is added up while a network trains: use it in a "
            "recipe's \"prune\", with `parsimony train` or `sweep`\n");
  EXPECT_EQ(place.run("prune cnn.onnx -o o.onnx --ratio 0.5 --mean 0.5 --std 0.5").err,
            "parsimony: --mean requires --calibration DATA\n");
  EXPECT_EQ(
      place.run("prune cnn.onnx -o o.onnx --ratio 0.5 --calibration shapes --mean 0.5,0.5").err,
      "parsimony: --mean has 2 values and --std 0; expected the same number, one per channel\n");
}

TEST(CliPrune, APlanRepeatsWhatHappenedToElements) {
  const Workplace place;
  for (const char* what :
       {"--criterion 1:3", "--criterion block:2x1 --ratio 0.5", "--criterion level --ratio 0.5"}) {
    const Outcome outcome =
        place.run(std::string("prune cnn.onnx -o o.onnx --no-verify --plan p.json ") + what);
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    const Outcome applied = place.run("apply cnn.onnx --plan p.json -o again.onnx");
    ASSERT_EQ(applied.code, 0) << applied.err;
    EXPECT_TRUE(same_bytes(place.bytes("again.onnx"), place.bytes("o.onnx"))) << what;
    EXPECT_FALSE(same_bytes(place.bytes("o.onnx"), place.bytes("cnn.onnx"))) << what;
  }
}

TEST(CliPrune, TheComponentMeasures) {
  const Workplace place;
  const auto plan_with = [&](const std::string& criterion) {
    const Outcome outcome = place.run(
        "prune cnn.onnx -o o.onnx --ratio 0.5 --no-verify --plan p.json --calibration shapes "
        "--samples 8 --criterion " +
            criterion,
        {{"PARSIMONY_TORCH_COMPONENT", PARSIMONY_FAKE_COMPONENT}});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return Json::parse(place.bytes("p.json"))["groups"][0]["slices"][0]["keep"];
  };
  // The fake's numbers fall with the channel: the last go first, but for a share of zeros.
  EXPECT_EQ(plan_with("taylor"), (Json{0, 1, 2, 3}));
  EXPECT_EQ(plan_with("apoz"), (Json{4, 5, 6, 7}));
}

TEST(CliPrune, WithoutTheProofItSaysNothingOfIt) {
  const Workplace place;
  const Outcome outcome =
      place.run("prune cnn.onnx -o o.onnx --ratio 0.5 --no-verify --report r.json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(lines_with(outcome.out, "Proven: ") + lines_with(outcome.out, "Not proven: "), "");
  EXPECT_EQ(Json::parse(place.bytes("r.json"))["proof"]["ran"], false);
}

TEST(CliPrune, AProofThatFailsNamesTheGroupAndLeavesNoFile) {
  const Workplace place;
  const auto run = [&](const std::string& guilty) {
    return place.run(
        "prune cnn.onnx -o o.onnx --ratio 0.5 --plan p.json --report r.json",
        {{"PARSIMONY_TORCH_COMPONENT", PARSIMONY_FAKE_COMPONENT}, {"FAKE_GUILTY", guilty}});
  };
  const Outcome second = run("g1");
  EXPECT_EQ(second.code, 1);
  EXPECT_EQ(second.err,
            "parsimony: verification failed: output \"y\": difference 5.0e-01, allowed 1.0e-04. It "
            "is caused by group g1 (c2): exclude its layers. Nothing was changed or written.\n");
  EXPECT_NE(run("g0").err.find("group g0 (c1)"), std::string::npos);
  EXPECT_NE(run("none").err.find("No single group causes"), std::string::npos);
  EXPECT_TRUE(place.results().empty());
}

TEST(CliPrune, TheGroupAtFaultMayBeLeftAsItIs) {
  const Workplace place;
  const auto run = [&](const std::string& guilty) {
    return place.run(
        "prune cnn.onnx -o o.onnx --ratio 0.5 --plan p.json --on-failure exclude",
        {{"PARSIMONY_TORCH_COMPONENT", PARSIMONY_FAKE_COMPONENT}, {"FAKE_GUILTY", guilty}});
  };
  const Outcome one = run("g1");
  EXPECT_EQ(one.code, 0) << one.err;
  EXPECT_NE(lines_with(one.out, "note:").find("group g1 (c2) was not pruned: verification failed"),
            std::string::npos);
  const Json groups = Json::parse(place.bytes("p.json"))["groups"];
  EXPECT_FALSE(groups.empty());
  EXPECT_TRUE(std::ranges::none_of(groups, [](const Json& group) { return group["id"] == "g1"; }));
  EXPECT_EQ(run("none").code, 1) << "no group can be left";
}

TEST(CliPrune, WhatCannotBeRunIsPrunedAndNotProven) {
  const Workplace place;
  const Outcome outcome = place.run("prune cnn.onnx -o o.onnx --ratio 0.5",
                                    {{"PARSIMONY_TORCH_COMPONENT", PARSIMONY_FAKE_COMPONENT},
                                     {"FAKE_ERROR", "UnsupportedError"}});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(lines_with(outcome.out, "Not proven"), "Not proven: it cannot be run.\n");
}

TEST(CliPrune, TheProofStandsInTheReport) {
  if (!kHasTorch) GTEST_SKIP() << "built without libtorch";
  const Workplace place;
  ASSERT_EQ(place.run("prune cnn.onnx -o o.onnx --ratio 0.5 --report r.json").code, 0);
  const Json proof = Json::parse(place.bytes("r.json"))["proof"];
  EXPECT_EQ(proof["holds"], true);
  EXPECT_EQ(proof["inputs"], 3);
  EXPECT_EQ(proof["outputs"][0]["name"], "y");
  EXPECT_LE(proof["outputs"][0]["difference"], 1e-4);
}

TEST(CliPrune, QuietPrintsNothing) {
  const Workplace place;
  for (const std::string line : {"-q prune cnn.onnx", "prune cnn.onnx --quiet"}) {
    const Outcome outcome = place.run(line + " -o o.onnx --ratio 0.5");
    EXPECT_EQ(outcome.code, 0);
    EXPECT_EQ(outcome.out + outcome.err, "");
  }
}

TEST(CliPrune, VerboseListsGroupsAndWhatStaysWhole) {
  const Workplace place;
  const Outcome outcome = place.run("prune -v cnn.onnx -o o.onnx --ratio 0.5");
  EXPECT_EQ(lines_with(outcome.out, "g0"), "g0        8     4    c1\n") << outcome.out;
  EXPECT_NE(outcome.out.find("graph output \"y\""), std::string::npos) << outcome.out;
}

TEST(CliPrune, NothingToRemoveGivesTheSameBytes) {
  const Workplace place;
  const Outcome outcome = place.run("prune cnn.onnx -o o.onnx --ratio 0");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_TRUE(same_bytes(place.bytes("o.onnx"), place.bytes("cnn.onnx")));
  EXPECT_EQ(lines_with(outcome.out, "note"),
            "note: nothing was pruned: the requested amount removes no channel after rounding "
            "(round_to, keep_at_least)\n");
}

TEST(CliPrune, SaysWhyNothingCanShrink) {
  const Workplace place;
  const Outcome outcome = place.run("prune whole.onnx -o o.onnx --ratio 0.5");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_TRUE(same_bytes(place.bytes("o.onnx"), place.bytes("whole.onnx")));
  EXPECT_EQ(lines_with(outcome.out, "note"),
            "note: nothing was pruned: no axis of this network can shrink; `parsimony explain` "
            "says why\n");
}

TEST(CliPrune, TheShorthandAndTheConfigFileAgree) {
  const Workplace place;
  place.write("c.json", R"([{"op_types": ["Conv2d"], "sparse_ratio": 0.5},
                            {"op_names": ["c2"], "exclude": true}])");
  ASSERT_EQ(place.run("prune cnn.onnx -o a.onnx --config c.json").code, 0);
  ASSERT_EQ(place.run("prune cnn.onnx -o b.onnx --ratio 0.5 --op-types Conv --exclude c2").code, 0);
  EXPECT_TRUE(same_bytes(place.bytes("a.onnx"), place.bytes("b.onnx")));
  EXPECT_FALSE(same_bytes(place.bytes("a.onnx"), place.bytes("cnn.onnx")));
}

TEST(CliPrune, RatiosMayBePercentagesAndNamesPatterns) {
  const Workplace place;
  ASSERT_EQ(place.run("prune cnn.onnx -o a.onnx --ratio 0.5 --exclude c2").code, 0);
  ASSERT_EQ(place.run("prune cnn.onnx -o b.onnx --ratio 50% --exclude '?2'").code, 0);
  EXPECT_TRUE(same_bytes(place.bytes("a.onnx"), place.bytes("b.onnx")));
  EXPECT_FALSE(same_bytes(place.bytes("a.onnx"), place.bytes("cnn.onnx")));
}

TEST(CliPrune, OptionsReachTheAllocator) {
  const Workplace place;
  const Outcome outcome =
      place.run("prune cnn.onnx -o o.onnx --ratio 0.5 --round-to 3 -v --op-types Conv,Gemm");
  EXPECT_EQ(lines_with(outcome.out, "g0"), "g0        8     6    c1\n") << outcome.err;
}

TEST(CliPrune, TheSeedDecidesWhatRandomRemoves) {
  const Workplace place;
  const std::string line = "prune cnn.onnx --ratio 0.5 --criterion random -o ";
  ASSERT_EQ(place.run(line + "a.onnx --seed 1").code, 0);
  ASSERT_EQ(place.run(line + "b.onnx --seed 1").code, 0);
  ASSERT_EQ(place.run(line + "c.onnx --seed 2").code, 0);
  EXPECT_TRUE(same_bytes(place.bytes("a.onnx"), place.bytes("b.onnx")));
  EXPECT_FALSE(same_bytes(place.bytes("a.onnx"), place.bytes("c.onnx")));
}

TEST(CliPrune, TheReportSaysWhatWasDone) {
  const Workplace place;
  ASSERT_EQ(place.run("prune cnn.onnx -o o.onnx --ratio 0.5 --report r.json -q").code, 0);
  const Json report = Json::parse(place.bytes("r.json"));
  EXPECT_EQ(report.at("parsimony_report"), 2);
  EXPECT_EQ(report.at("command"),
            "parsimony prune cnn.onnx -o o.onnx --ratio 0.5 --report r.json -q");
  EXPECT_EQ(report.at("source").at("sha256").get<std::string>().size(), 64U);
  EXPECT_EQ(report.at("source").at("bytes"), place.bytes("cnn.onnx").size());
  EXPECT_EQ(report.at("result").at("bytes"), place.bytes("o.onnx").size());
  EXPECT_EQ(report.at("params"), (Json{{"before", 686}, {"after", 235}}));
  EXPECT_LT(report.at("macs").at("after"), report.at("macs").at("before"));
  EXPECT_EQ(report.at("groups").at(0).at("layers"), Json::array({"c1"}));
  for (const char* stage : {"read", "couple", "plan", "edit", "write"}) {
    EXPECT_TRUE(report.at("timings").at(stage).is_number()) << stage;
  }
}

TEST(CliPrune, TimingsArePrinted) {
  const Workplace place;
  const Outcome outcome = place.run("prune cnn.onnx -o o.onnx --ratio 0.5 --timings");
  for (const char* stage : {"read ", "couple ", "write ", "total "}) {
    EXPECT_NE(lines_with(outcome.out, stage), "") << outcome.out;
  }
}

TEST(CliPrune, TimingsCountTheSamplesThatAStageReads) {
  const Workplace place;
  const Outcome outcome = place.run(
      "prune cnn.onnx -o o.onnx --ratio 0.5 --criterion wanda --calibration random:48 "
      "--recover bias --timings --report r.json");
  EXPECT_NE(outcome.out.find("samples read"), std::string::npos) << outcome.out << outcome.err;
  const Json report = Json::parse(place.bytes("r.json"));
  // A pass over the data, and what tells how they look.
  EXPECT_GE(report.at("samples_read").at("measure"), 48);
  EXPECT_LT(report.at("samples_read").at("measure"), 2 * 48);
  EXPECT_GE(report.at("samples_read").at("recover"), 48);
}

TEST(CliPrune, ThePlanNamesItsSource) {
  const Workplace place;
  ASSERT_EQ(place.run("prune cnn.onnx -o o.onnx --ratio 0.5 --plan p.json -q").code, 0);
  const Outcome sum = place.shell("sha256sum <cnn.onnx");
  EXPECT_EQ(Plan::load(place / "p.json").sha256, sum.out.substr(0, 64));
}

TEST(CliPrune, MasksCoverChannelsAndElements) {
  const Workplace place;
  place.write("c.json", R"([{"op_names": ["c1"], "sparse_ratio": 0.5},
                            {"op_names": ["fc"], "sparse_ratio": 0.5, "criterion": "level"}])");
  const Outcome outcome =
      place.run("prune cnn.onnx -o o.onnx --config c.json --masks-out m.safetensors");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto removed = [&](const std::string& tensor) -> int64_t {
    for (const ElementMask& mask : read_masks(place / "m.safetensors")) {
      if (mask.tensor == tensor) return std::count(mask.keep.begin(), mask.keep.end(), 0);
    }
    return -1;
  };
  EXPECT_EQ(removed("w1"), 4 * 27);
  EXPECT_EQ(removed("b1"), 4);
  EXPECT_EQ(removed("w2"), 6 * 4 * 9);
  EXPECT_EQ(removed("w3"), 15);
  EXPECT_EQ(lines_with(outcome.out, "15 elements"), "15 elements set to zero.\n") << outcome.out;
}

TEST(CliPrune, MayReplaceItsInput) {
  const Workplace place;
  ASSERT_EQ(place.run("prune cnn.onnx -o o.onnx --ratio 0.5").code, 0);
  ASSERT_EQ(place.run("prune cnn.onnx -o cnn.onnx --ratio 0.5 --in-place").code, 0);
  EXPECT_TRUE(same_bytes(place.bytes("cnn.onnx"), place.bytes("o.onnx")));
}

TEST(CliPrune, AFailureLeavesAnOlderFileWhole) {
  const Workplace place;
  place.write("o.onnx", "older");
  EXPECT_EQ(place.run("prune cnn.onnx -o o.onnx --ratio 0.5 --exclude nobody").code, 2);
  EXPECT_EQ(place.run("prune cnn.onnx -o o.onnx --ratio 0.5 --plan none/p.json").code, 4);
  place.write("broken.onnx", place.bytes("cnn.onnx").substr(0, 300));
  EXPECT_EQ(place.run("prune broken.onnx -o o.onnx --ratio 0.5").code, 4);
  EXPECT_EQ(place.bytes("o.onnx"), "older");
  EXPECT_EQ(place.results(), (std::vector<std::string>{"broken.onnx", "o.onnx"}));
}

TEST(CliPrune, AnOpsetThatIsNotReadIsUnsupported) {
  const Workplace place;
  std::string bytes = place.bytes("cnn.onnx");
  onnx::ModelProto model;
  ASSERT_TRUE(model.ParseFromString(bytes));
  model.mutable_opset_import(0)->set_version(99);
  place.write("new.onnx", model.SerializeAsString());
  const Outcome outcome = place.run("prune new.onnx -o o.onnx --ratio 0.5");
  EXPECT_EQ(outcome.code, 3);
  EXPECT_TRUE(outcome.err.starts_with("parsimony: new.onnx")) << outcome.err;
}

TEST(CliPrune, TheDemoModelLosesThreeQuarters) {
  const Workplace place;
  const Outcome outcome = place.run("prune '" + mnist() + "' -o o.onnx --ratio 0.5");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("4 of 4 groups pruned, 76 of 152 channels kept."), std::string::npos)
      << outcome.out;
  EXPECT_LT(place.bytes("o.onnx").size(), 50'000U);
}

/// The box head of a detector: an expectation over eight bins, as a layer or by a view of their
/// centres.
onnx::ModelProto expectation(bool by_view) {
  onnx::ModelProto model = model_of(by_view ? R"(
    agraph (float[1, 3, 4, 4] x) => (float[1, 1, 4, 4] y)
    <int64[4] form = {1, 8, 1, 1}, int64[1] channels = {1}> {
      a = Conv (x, w)
      bins = Softmax <axis = 1> (a)
      view = Reshape (centres, form)
      shares = Mul (bins, view)
      y = ReduceSum (shares, channels)
    })"
                                            : R"(
    agraph (float[1, 3, 4, 4] x) => (float[1, 1, 4, 4] y) {
      a = Conv (x, w)
      bins = Softmax <axis = 1> (a)
      y = Conv (bins, centres)
    })");
  add_weight(model, "w", "8x3x1x1");
  add_weight(model, "centres", by_view ? "8" : "1x8x1x1");
  model.mutable_graph()->mutable_node(by_view ? 3 : 2)->set_name("expected");
  return model;
}

TEST(CliPrune, OutcomesOfASoftmaxStayUnlessAskedFor) {
  const Workplace place;
  for (const bool by_view : {false, true}) {
    save(expectation(by_view), place / "bins.onnx");
    const Outcome kept = place.run("prune bins.onnx -o o.onnx --ratio 0.5");
    EXPECT_EQ(
        lines_with(kept.out, "note: group g0"),
        "note: group g0 was not pruned: \"expected\" weights the outputs of a softmax over its "
        "channels by position, so removing a channel changes the meaning of the others; "
        "--allow-mixing prunes it\n")
        << kept.out;
    EXPECT_EQ(lines_with(kept.out, "parameters"), "parameters       32     32  100.0%\n")
        << kept.out;
    const Outcome pruned = place.run("prune bins.onnx -o o.onnx --ratio 0.5 --allow-mixing");
    EXPECT_EQ(lines_with(pruned.out, "parameters"), "parameters       32     16  50.0%\n")
        << pruned.out;
  }
  EXPECT_EQ(place.run("prune bins.onnx -o o.onnx --ratio 0.5 --allow-mixing --exact-only").code, 2);
}

TEST(CliPrune, InputsByNameAndSamples) {
  const Workplace place;
  const Outcome named = place.run("prune cnn.onnx -o o.onnx --ratio 0.5 --input x=3x3x8x8");
  EXPECT_EQ(named.code, 0) << named.err;
  EXPECT_EQ(lines_with(named.out, "MACs are counted"), "MACs are counted for x[3, 3, 8, 8].\n");
  const Outcome unknown = place.run("prune cnn.onnx -o o.onnx --ratio 0.5 --input image=1x3x8x8");
  EXPECT_EQ(unknown.code, 2);
  EXPECT_EQ(unknown.err, "parsimony: the network has no input \"image\".\n");
  const std::vector<float> x(2 * 3 * 8 * 8, 0.25F);
  write_tensors(place / "x.safetensors",
                {{"x", DType::kFloat32, {2, 3, 8, 8}, std::as_bytes(std::span(x))}});
  const std::string sample = " --sample x.safetensors";
  const Outcome outcome = place.run("prune cnn.onnx -o o.onnx --ratio 0.5 --plan p.json" + sample);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(lines_with(outcome.out, "MACs are counted"), "MACs are counted for x[2, 3, 8, 8].\n");
  if (!kHasTorch) return;
  EXPECT_NE(lines_with(outcome.out, "Proven"), "") << outcome.out;
  EXPECT_EQ(place.run("verify cnn.onnx o.onnx --plan p.json" + sample).code, 0);
}

TEST(CliPrune, MeasuresWhatTheUserCommands) {
  const Workplace place;
  const Outcome outcome = place.run(
      "prune cnn.onnx -o 'small one.onnx' --ratio 0.5 --report r.json --metric 'wc -c < "
      "{model}:min' "
      "--metric 'echo accuracy = 91.5%, from {model}; echo'");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json metrics = Json::parse(place.bytes("r.json")).at("metrics");
  ASSERT_EQ(metrics.size(), 2U);
  EXPECT_EQ(metrics[0].at("before"), place.bytes("cnn.onnx").size());
  EXPECT_EQ(metrics[0].at("after"), place.bytes("small one.onnx").size());
  EXPECT_TRUE(metrics[0].at("lower_is_better"));
  EXPECT_EQ(metrics[1].at("after"), 91.5);
  EXPECT_EQ(metrics[1].at("output_before"), "accuracy = 91.5%, from cnn.onnx\n\n");
  EXPECT_NE(lines_with(outcome.out, "echo accuracy").find("+0.00%"), std::string::npos)
      << outcome.out;
}

TEST(CliPrune, AMetricThatFailsCostsNothingThatIsWritten) {
  const Workplace place;
  const Outcome before =
      place.run("prune cnn.onnx -o o.onnx --ratio 0.5 --metric 'exit 3; {model}'");
  EXPECT_EQ(before.code, 4);
  EXPECT_EQ(before.err,
            "parsimony: --metric: exit 3; 'cnn.onnx': exit code 3, without any output\n");
  EXPECT_FALSE(place.has("o.onnx"));
  const Outcome after = place.run(
      "prune cnn.onnx -o o.onnx --ratio 0.5 --report r.json "
      "--metric 'test {model} = cnn.onnx && echo 1 || echo none'");
  EXPECT_EQ(after.code, 4);
  EXPECT_NE(after.err.find("its output contains no number; it printed: none"), std::string::npos)
      << after.err;
  EXPECT_TRUE(place.has("o.onnx"));
  EXPECT_TRUE(Json::parse(place.bytes("r.json")).at("metrics")[0].at("after").is_null());
  EXPECT_EQ(place.run("prune cnn.onnx -o o.onnx --ratio 0.5 --metric 'echo 1'").err,
            "parsimony: --metric \"echo 1\": expected a command with {model} in place of the "
            "model's path, or one of mse, psnr, snr, si-sdr, cosine, agreement, top5, iou, recall, "
            "boxes, perplexity, accuracy.\n");
  const Outcome slow = place.run(
      "prune cnn.onnx -o p.onnx --ratio 0.5 --metric-minutes 0.005 "
      "--metric 'sleep 30; echo {model}'");
  EXPECT_NE(slow.err.find("timed out after --metric-minutes"), std::string::npos) << slow.err;
}

TEST(CliPrune, PresetsGoBehindOtherOptions) {
  const Workplace place;
  EXPECT_EQ(place.run("prune cnn.onnx -o o.onnx --ratio 0.5 --preset best").err,
            "parsimony: prune: --preset best matches the dense network's outputs and requires "
            "--calibration DATA\n");
  EXPECT_EQ(place.run("prune cnn.onnx -o o.onnx --ratio 0.5 --preset quick").code, 0)
      << "without data the options' defaults";
  if (!kHasTorch) GTEST_SKIP() << "built without libtorch";
  const auto steps_of = [&](const std::string& options) {
    const Outcome outcome = place.run(
        "prune cnn.onnx -o o.onnx --ratio 0.5 --calibration random:32 --report r.json " + options);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    std::string found;
    const Json report = Json::parse(place.bytes("r.json"));
    for (const Json& step : report.at("recovery").at("steps")) {
      found += step.at("method").get<std::string>() + " ";
    }
    return found;
  };
  EXPECT_EQ(steps_of("--preset quick"), "least-squares ");
  const std::string ranked = place.bytes("o.onnx");
  EXPECT_EQ(steps_of("--preset best --recover-epochs 1"), "least-squares outputs ");
  EXPECT_EQ(steps_of("--preset quick --recover bias"), "bias ");
  EXPECT_EQ(steps_of("--criterion obs --recover least-squares"), "least-squares ");
  EXPECT_TRUE(same_bytes(place.bytes("o.onnx"), ranked));
  EXPECT_EQ(steps_of("--preset quick --criterion l1"), "least-squares ");
  EXPECT_FALSE(same_bytes(place.bytes("o.onnx"), ranked));
}

TEST(CliPrune, FindsTheLargestCutThatAMetricAllows) {
  const Workplace place;
  const std::string prune = "prune cnn.onnx -o o.onnx --plan p.json --report r.json ";
  const std::string size = "--metric 'wc -c < {model}' --metric-runs 5";
  const Outcome outcome = place.run(prune + "--budget metric=-30% " + size);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json metric = Json::parse(place.bytes("r.json")).at("metrics")[0];
  const double before = metric.at("before");
  const double bound = metric.at("bound");
  EXPECT_DOUBLE_EQ(bound, 0.7 * before);
  EXPECT_EQ(metric.at("after"), place.bytes("o.onnx").size());
  EXPECT_GE(metric.at("after"), bound);
  ASSERT_EQ(metric.at("trials").size(), 5U);
  double least = 1;
  for (const Json& trial : metric.at("trials")) {
    EXPECT_EQ(trial.at("within"), trial.at("value") >= bound);
    if (trial.at("within")) least = std::min<double>(least, trial.at("macs"));
  }
  for (const Json& trial : metric.at("trials")) {
    EXPECT_EQ(trial.at("within"), trial.at("macs") >= least) << "the size falls with the MACs";
  }
  EXPECT_EQ(lines_with(outcome.err, "macs=").substr(0, 9), "macs=50%:");
  EXPECT_TRUE(place.has("p.json"));
}

TEST(CliPrune, ABudgetThatNoCutMeetsWritesNothing) {
  const Workplace place;
  const auto refusal = [&](const std::string& options) {
    const Outcome outcome = place.run("prune cnn.onnx -o o.onnx -q --metric-runs 2 " + options);
    EXPECT_NE(outcome.code, 0);
    EXPECT_FALSE(place.has("o.onnx"));
    return outcome.err;
  };
  EXPECT_NE(refusal("--budget metric=1e9 --metric 'wc -c < {model}'")
                .find("no pruned network meets it: with 75% of the MACs wc -c < {model} yields"),
            std::string::npos);
  EXPECT_NE(refusal("--budget metric=-5 --metric 'test {model} = cnn.onnx && echo 5'")
                .find("exit code 1, without any output, expected 0"),
            std::string::npos);
  EXPECT_EQ(refusal("--budget metric=-1%"),
            "parsimony: --budget metric=…: expected one --metric, found 0\n");
  EXPECT_NE(refusal("--budget metric=5% --metric 'wc -c < {model}'").find("expected metric=-1%"),
            std::string::npos);
  EXPECT_NE(refusal("--budget metric=-1% --ratio 0.5 --metric 'wc -c < {model}'")
                .find("cannot be combined with --ratio"),
            std::string::npos);
}

TEST(CliPrune, MeasuresTheDistanceToTheDenseNetwork) {
  if (!kHasTorch) GTEST_SKIP() << "networks are run by libtorch";
  const Workplace place;
  const Outcome outcome =
      place.run("prune cnn.onnx -o o.onnx --ratio 0.5 --report r.json --metric psnr --metric mse");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json metrics = Json::parse(place.bytes("r.json")).at("metrics");
  EXPECT_EQ(metrics[0].at("before"), 200);
  EXPECT_LT(metrics[0].at("after"), 60);
  EXPECT_EQ(metrics[1].at("before"), 0);
  EXPECT_GT(metrics[1].at("after"), 0);
  EXPECT_TRUE(metrics[1].at("lower_is_better"));
  const double psnr = metrics[0].at("after");
  const Outcome better =
      place.run("prune cnn.onnx -o b.onnx --report r.json --metric psnr --budget metric=" +
                std::to_string(psnr + 3));
  ASSERT_EQ(better.code, 0) << better.err;
  EXPECT_GE(Json::parse(place.bytes("r.json")).at("metrics")[0].at("after"), psnr + 3);
  EXPECT_NE(place.run("prune cnn.onnx -o b.onnx --ratio 0.5 --metric accuracy")
                .err.find("requires labels"),
            std::string::npos);
  const Outcome curves = place.run("sensitivity cnn.onnx --metric psnr --ratios 0.5");
  EXPECT_NE(curves.out.find("psnr lost"), std::string::npos) << curves.out << curves.err;
  const Outcome sizes =
      place.run("sensitivity cnn.onnx --metric 'wc -c < {model}' --ratios 0.25,0.5 --json s.json");
  ASSERT_EQ(sizes.code, 0) << sizes.err;
  EXPECT_NE(sizes.out.find(", by wc -c < {model}; channels ranked by l1."), std::string::npos)
      << sizes.out;
  const std::vector<double> lost = Json::parse(place.bytes("s.json")).at("groups")[0].at("errors");
  ASSERT_EQ(lost.size(), 2U);
  EXPECT_GT(lost[0], 0) << "bytes";
  EXPECT_NEAR(lost[1], 2 * lost[0], 0.2 * lost[1]);
  EXPECT_EQ(place.run("sensitivity cnn.onnx --metric 'false {model}'").code, 4);
}

}  // namespace
}  // namespace parsimony::test
