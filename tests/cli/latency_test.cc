// A latency budget with a stand-in for libtorch that takes 50 us a node and 1 us a weight.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/cli/command.h"

namespace parsimony::test {
namespace {

using Json = nlohmann::json;

std::map<std::string, std::string> fake(const Workplace& place) {
  return {{"PARSIMONY_TORCH_COMPONENT", PARSIMONY_FAKE_COMPONENT},
          {"PARSIMONY_CACHE", place / "cache"},
          {"PARSIMONY_ONNXRUNTIME", ""}};
}

constexpr char kWithinTime[] = "prune cnn.onnx -o o.onnx --no-verify --budget latency_ms=0.8 ";

TEST(CliLatency, IsMeasuredAndReported) {
  const Workplace place;
  const Outcome outcome = place.run(
      kWithinTime + std::string("--threads 1 --latency-table t.json --report r.json"), fake(place));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(lines_with(outcome.out, "latency, ms"), "") << outcome.out;
  EXPECT_TRUE(lines_with(outcome.out, "Asked for 0.8 ms: measured ")
                  .ends_with(" ms by the times of its layers.\n"))
      << outcome.out;
  EXPECT_EQ(lines_with(outcome.out, "On libtorch"),
            "On libtorch fake with 1 thread; 3 layers, 3 shapes of them measured in this run, the "
            "oldest time today.\n");
  const Json latency = Json::parse(place.bytes("r.json")).at("latency");
  EXPECT_DOUBLE_EQ(latency.at("wanted_seconds"), 0.8e-3);
  // 6 nodes and 686 weights, and never less than that.
  EXPECT_GE(latency.at("dense_seconds"), 986e-6);
  EXPECT_LT(latency.at("measured_seconds"), latency.at("dense_seconds"));
  EXPECT_GE(latency.at("networks"), 1);
}

TEST(CliLatency, OutputsThatSayNothingAreNamed) {
  const Workplace place;
  const Outcome outcome =
      place.run("prune cnn.onnx -o o.onnx --no-verify --ratio 0.5 --scope outputs", fake(place));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("g0: is ranked last: the outputs do not determine its importance"),
            std::string::npos)
      << outcome.out;
}

TEST(CliLatency, TablesAreMeasuredOnce) {
  const Workplace place;
  const std::string line = kWithinTime + std::string("--threads 1 --report r.json");
  const auto fresh = [&] {
    const Outcome outcome = place.run(line, fake(place));
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return Json::parse(place.bytes("r.json")).at("latency").at("measured_now");
  };
  EXPECT_EQ(fresh(), 3);
  EXPECT_EQ(fresh(), 0);
}

TEST(CliLatency, ATableOfOtherCircumstancesIsRefused) {
  const Workplace place;
  const std::string line = kWithinTime + std::string("--latency-table t.json --threads 1");
  ASSERT_EQ(place.run(line, fake(place)).code, 0);
  Json table = Json::parse(place.bytes("t.json"));
  table["engine"] = "libtorch 9";
  place.write("t.json", table.dump());
  const Outcome outcome = place.run(line, fake(place));
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.err,
            "parsimony: t.json: \"engine\": found \"libtorch 9\", wanted \"libtorch fake\"; times "
            "hold for one machine, engine and number of threads: name another file\n");
}

TEST(CliLatency, MistakesAreNamed) {
  const Workplace place;
  const auto error = [&](const std::string& options) {
    const Outcome outcome = place.run("prune cnn.onnx -o o.onnx " + options, fake(place));
    EXPECT_EQ(outcome.code, 2);
    return outcome.err;
  };
  EXPECT_NE(error("--budget latency_ms=0").find("--budget: "), std::string::npos);
  EXPECT_NE(error("--budget latency_ms=soon").find("--budget: "), std::string::npos);
  EXPECT_EQ(error("--budget latency_ms=1 --engine tensorrt"),
            "parsimony: --engine: found \"tensorrt\", wanted \"auto\", \"libtorch\" or "
            "\"onnxruntime\".\n");
  EXPECT_TRUE(place.results().empty() || place.results()[0] == "cache");
}

}  // namespace
}  // namespace parsimony::test
