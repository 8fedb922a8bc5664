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
  EXPECT_TRUE(lines_with(outcome.out, "Requested 0.8 ms: measured ")
                  .ends_with(" ms by the times of its layers.\n"))
      << outcome.out;
  EXPECT_EQ(lines_with(outcome.out, "On libtorch"),
            "On libtorch fake with 1 thread; 3 layers, 3 shapes of them measured in this run, the "
            "oldest time today.\n");
  const Json latency = Json::parse(place.bytes("r.json")).at("latency");
  EXPECT_DOUBLE_EQ(latency.at("requested_seconds"), 0.8e-3);
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
  EXPECT_EQ(
      outcome.err,
      "parsimony: t.json: \"engine\": found \"libtorch 9\", expected \"libtorch fake\"; times "
      "hold for one machine, engine and number of threads: name another file\n");
}

// A device that takes 1 ms and 10 us for each byte of the file.
constexpr char kDevice[] = "\"wc -c < {model} | awk '{ print 1 + \\$1 / 100 }'\"";

TEST(CliLatency, ACommandMeasuresWholeNetworks) {
  const Workplace place;
  const Outcome outcome = place.run(
      "prune cnn.onnx -o o.onnx --no-verify --budget latency_ms=80% --threads 1 --report "
      "r.json --latency-command " +
          std::string(kDevice),
      fake(place));
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("ms, by the command ("), std::string::npos) << outcome.out;
  EXPECT_NE(lines_with(outcome.out, "On libtorch fake"), "") << "its layers";
  const Json latency = Json::parse(place.bytes("r.json")).at("latency");
  EXPECT_TRUE(latency.at("measured_by").get<std::string>().starts_with("wc -c"));
  EXPECT_NEAR(latency.at("measured_seconds").get<double>(),
              0.8 * latency.at("dense_seconds").get<double>(),
              0.05 * latency.at("requested_seconds").get<double>());
}

TEST(CliLatency, ACommandsTableServesElsewhere) {
  const Workplace place;
  const Outcome there = place.run(
      "prune cnn.onnx -o o.onnx --no-verify --budget latency_ms=80% --latency-table "
      "board.json --latency-command " +
          std::string(kDevice),
      fake(place));
  ASSERT_EQ(there.code, 0) << there.err;
  EXPECT_NE(lines_with(there.out, "By the command; 3 layers, 3 shapes of them measured"), "")
      << there.out;
  const Outcome here = place.run(
      "prune cnn.onnx -o o.onnx --no-verify --budget latency_ms=80% --latency-table board.json",
      fake(place));
  ASSERT_EQ(here.code, 0) << here.err;
  EXPECT_TRUE(lines_with(here.out, "Requested ")
                  .ends_with(" ms by the times of its layers; the network as a whole was not "
                             "measured.\n"))
      << here.out;
  // A layer that the device has not seen.
  const Outcome other = place.run("prune " + mnist() +
                                      " -o o.onnx --no-verify --budget latency_ms=80% "
                                      "--latency-table board.json",
                                  fake(place));
  EXPECT_EQ(other.code, 3);
  EXPECT_TRUE(other.err.starts_with("parsimony: board.json has layer times for wc -c"))
      << other.err;
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
  EXPECT_NE(error("--budget latency_ms=1 --latency-command ./time")
                .find("expected a command with {model} in it"),
            std::string::npos);
  EXPECT_NE(error("--ratio 0.5 --latency-command 'wc -c {model}'")
                .find("--latency-command requires --budget latency_ms"),
            std::string::npos);
  EXPECT_EQ(error("--budget latency_ms=1 --engine libtorch --provider cuda"),
            "parsimony: --provider requires --engine onnxruntime\n");
  EXPECT_EQ(error("--budget latency_ms=1 --engine tensorrt"),
            "parsimony: --engine: found \"tensorrt\", expected \"auto\", \"libtorch\" or "
            "\"onnxruntime\".\n");
  EXPECT_TRUE(place.results().empty() || place.results()[0] == "cache");
}

}  // namespace
}  // namespace parsimony::test
