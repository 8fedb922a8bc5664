// bench with a stand-in for libtorch that takes 50 microseconds a node, and with what is installed.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/cli/command.h"

namespace parsimony::test {
namespace {

using Json = nlohmann::json;

/// The stand-in, and no ONNX Runtime.
std::map<std::string, std::string> timed_component(std::map<std::string, std::string> more = {}) {
  more.insert({{"PARSIMONY_TORCH_COMPONENT", PARSIMONY_FAKE_COMPONENT},
               {"PARSIMONY_CACHE", "/none"},
               {"PARSIMONY_ONNXRUNTIME", ""}});
  return more;
}

Json results(const Workplace& place, const std::string& arguments,
             const std::map<std::string, std::string>& environment) {
  const Outcome outcome = place.run("bench " + arguments + " --runs 20 --json b.json", environment);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  return Json::parse(place.bytes("b.json"));
}

TEST(CliBench, MeasuresModelsInTurn) {
  const Workplace place;
  const Json json =
      results(place, "cnn.onnx whole.onnx --engine libtorch --seed 7", timed_component());
  EXPECT_EQ(json.at("parsimony_bench"), 2);
  EXPECT_EQ(json.at("seed"), 7);
  EXPECT_EQ(json.at("engines").at(0).at("version"), "fake");
  EXPECT_EQ(json.at("models").at(0).at("inputs").at(0).at("shape"), Json::parse("[1, 3, 8, 8]"));
  const Json& rows = json.at("rows");
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_TRUE(rows.at(0).at("speedup").is_null()) << "the first is what others are compared to";
  for (const Json& row : rows) {
    EXPECT_EQ(row.at("runs"), 20);
    EXPECT_TRUE(row.at("refused").is_null());
    EXPECT_GE(row.at("warm_up").get<int>(), 3);
    EXPECT_LE(row.at("lower_quartile_seconds"), row.at("median_seconds"));
    EXPECT_LE(row.at("median_seconds"), row.at("upper_quartile_seconds"));
  }
  EXPECT_GE(rows.at(0).at("median_seconds").get<double>(), 300e-6) << "six nodes";
  EXPECT_EQ(rows.at(1).at("batch"), 2) << "the file fixes it";
  const Json& speedup = rows.at(1).at("speedup");
  EXPECT_EQ(speedup.at("pairs"), 20);
  EXPECT_LE(speedup.at("low"), speedup.at("median"));
  EXPECT_LE(speedup.at("median"), speedup.at("high"));
}

TEST(CliBench, PrintsATableAndWhatItWasMeasuredOn) {
  const Outcome outcome =
      Workplace().run("bench cnn.onnx whole.onnx --runs 8 --threads 1", timed_component());
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(outcome.out.starts_with("engine    batch  model")) << outcome.out;
  EXPECT_NE(lines_with(outcome.out, "libtorch      1  cnn.onnx"), "") << outcome.out;
  EXPECT_NE(lines_with(outcome.out,
                       "note: the models take different inputs: cnn.onnx x[1, 3, 8, 8] float32; "
                       "whole.onnx x[2, 4] float32"),
            "")
      << outcome.out;
  EXPECT_NE(lines_with(outcome.out, "note: ONNX Runtime was not found"), "") << outcome.out;
  EXPECT_NE(lines_with(outcome.out, "Measured with 1 thread, libtorch fake."), "") << outcome.out;
  EXPECT_NE(lines_with(outcome.out, "processor: "), "");
}

TEST(CliBench, ACommandMeasuresInPlaceOfEngines) {
  const Workplace place;
  const Outcome outcome = place.run(
      "bench cnn.onnx whole.onnx --runs 6 --json b.json --latency-command 'wc -c < {model}'");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(lines_with(outcome.out, "Measured by wc -c < {model}"), "") << outcome.out;
  const Json rows = Json::parse(place.bytes("b.json")).at("rows");
  ASSERT_EQ(rows.size(), 2U);
  for (const size_t m : {0, 1}) {
    const auto bytes = place.bytes(m == 0 ? "cnn.onnx" : "whole.onnx").size();
    EXPECT_DOUBLE_EQ(rows.at(m).at("median_seconds"), 1e-3 * static_cast<double>(bytes));
    EXPECT_EQ(rows.at(m).at("runs"), 6);
  }
  EXPECT_EQ(place.run("bench cnn.onnx --latency-retries 0 --latency-command 'false {model}'").code,
            3);
}

TEST(CliBench, TheSameModelTwiceIsCalledByNumber) {
  const Workplace place;
  const Outcome outcome = place.run("bench cnn.onnx cnn.onnx --runs 3", timed_component());
  EXPECT_NE(outcome.out.find("cnn.onnx (2)"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("too few rounds to tell"), std::string::npos) << outcome.out;
}

TEST(CliBench, TakesSeveralBatchesWhereTheFileLeavesThemOpen) {
  const Workplace place;
  const Json json = results(place, "cnn.onnx whole.onnx --batch 2,5", timed_component());
  const Json& rows = json.at("rows");
  ASSERT_EQ(rows.size(), 4U);
  EXPECT_EQ(rows.at(0).at("batch"), 2);
  EXPECT_TRUE(rows.at(1).at("refused").is_null()) << "2 is what the file has";
  EXPECT_EQ(rows.at(2).at("batch"), 5);
  EXPECT_GT(rows.at(2).at("samples_per_second"), rows.at(0).at("samples_per_second"));
  EXPECT_EQ(rows.at(3).at("refused"),
            "the file fixes input \"x\" to [2, 4], a batch of 5 does not fit");
}

TEST(CliBench, WhatOneModelLacksDoesNotStopTheOthers) {
  const Workplace place;
  const auto refusing = timed_component({{"FAKE_REFUSES", "MatMul"}});
  const Outcome outcome = place.run("bench cnn.onnx whole.onnx --runs 3", refusing);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("does not run"), std::string::npos) << outcome.out;
  EXPECT_NE(lines_with(outcome.out, "note: whole.onnx on libtorch: no kernel for MatMul"), "")
      << outcome.out;
  const Outcome nothing = place.run("bench whole.onnx --runs 3 --json b.json", refusing);
  EXPECT_EQ(nothing.code, 3);
  EXPECT_EQ(nothing.err,
            "parsimony: bench: no engine runs any of the models\n"
            "  whole.onnx on libtorch: no kernel for MatMul\n");
  EXPECT_EQ(place.results(), std::vector<std::string>{});
}

TEST(CliMessages, Bench) {
  const Workplace place;
  expect_messages("bench", place,
                  timed_component({{"NOT_ONNXRUNTIME", PARSIMONY_FAKE_COMPONENT},
                                   {"OLD_ONNXRUNTIME", PARSIMONY_OLD_ONNXRUNTIME}}));
  // What follows is the loader's.
  constexpr std::pair<const char*, const char*> kBegin[] = {
      {"--engine onnxruntime", "ONNX Runtime was not found; pass --onnxruntime PATH, set "},
      {"--onnxruntime /none/libonnxruntime.so", "ONNX Runtime cannot be loaded from /none/"},
      {"--onnxruntime cnn.onnx", "ONNX Runtime cannot be loaded from "}};
  for (const auto& [options, message] : kBegin) {
    const Outcome outcome = place.run(std::string("bench cnn.onnx ") + options, timed_component());
    EXPECT_EQ(outcome.code, 3) << options;
    EXPECT_TRUE(outcome.err.starts_with(std::string("parsimony: ") + message)) << outcome.err;
  }
}

TEST(CliBench, TheVariableNamesTheLibraryToo) {
  const Outcome outcome =
      Workplace().run("bench cnn.onnx --runs 3",
                      timed_component({{"PARSIMONY_ONNXRUNTIME", PARSIMONY_OLD_ONNXRUNTIME}}));
  EXPECT_EQ(outcome.code, 3);
  EXPECT_NE(outcome.err.find("is ONNX Runtime 1.2.0"), std::string::npos) << outcome.err;
}

TEST(CliBench, OnnxRuntimeNeedsNoLibtorch) {
  const Workplace place;
  const Outcome outcome = place.run("bench cnn.onnx whole.onnx --runs 10 --batch 2 --json b.json",
                                    {{"PARSIMONY_TORCH_COMPONENT", "/none/parsimony_torch.so"}});
  if (outcome.err.find("ONNX Runtime was not found") != std::string::npos ||
      outcome.err.find("libtorch component") != std::string::npos) {
    GTEST_SKIP() << "there is no ONNX Runtime";
  }
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json json = Json::parse(place.bytes("b.json"));
  EXPECT_EQ(json.at("engines").size(), 1U);
  EXPECT_EQ(json.at("engines").at(0).at("name"), "onnxruntime");
  EXPECT_EQ(json.at("rows").at(0).at("runs"), 10);
  EXPECT_NE(lines_with(outcome.out, "note: this requires the libtorch component"), "")
      << outcome.out;
}

TEST(CliBench, LibtorchRunsItsBatches) {
  if (!kHasTorch) GTEST_SKIP() << "built without libtorch";
  const Workplace place;
  const Outcome outcome =
      place.run("bench cnn.onnx --engine libtorch --runs 5 --warm-up 1 --batch 1,3 --json b.json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json json = Json::parse(place.bytes("b.json"));
  EXPECT_EQ(json.at("rows").size(), 2U);
  EXPECT_EQ(json.at("rows").at(1).at("warm_up"), 2);
}

}  // namespace
}  // namespace parsimony::test
