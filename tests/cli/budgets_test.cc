// Budgets of small machines, several together, and what `inspect` says of memory.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/cli/command.h"

namespace parsimony::test {
namespace {

using Json = nlohmann::json;

class CliBudgets : public testing::Test {
 protected:
  /// The report of a pruning to this budget.
  Json pruned(const std::string& budget) {
    const Outcome outcome =
        place_.run("prune cnn.onnx -o o.onnx --no-verify --report r.json --budget " + budget);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    out_ = outcome.out;
    return Json::parse(place_.bytes("r.json"));
  }

  Workplace place_;
  std::string out_;
};

TEST_F(CliBudgets, PeakMemoryFits) {
  const Json report = pruned("peak_ram=2K");
  EXPECT_EQ(report["peak_memory"]["before"], 4 * 64 * (8 + 6));  // from c1 to c2
  EXPECT_LE(report["peak_memory"]["after"], 2048);
  EXPECT_GT(report["peak_memory"]["after"], 1500);  // no more was taken than had to be
  EXPECT_NE(out_.find("activations, bytes"), std::string::npos) << out_;
}

TEST_F(CliBudgets, AFileFits) {
  const Json report = pruned("file=2K");
  EXPECT_LE(report["result"]["bytes"], 2048);
  EXPECT_GT(report["result"]["bytes"], 1500);
}

TEST_F(CliBudgets, WeightsFit) {
  const Json report = pruned("weights=1000");
  EXPECT_LE(4 * report["params"]["after"].get<int64_t>(), 1000);
}

TEST_F(CliBudgets, HoldTogether) {
  const Json report = pruned("macs=60%,peak_ram=3K,params=300");
  const Json& macs = report["macs"];
  EXPECT_LE(macs["after"].get<double>(), 0.6 * macs["before"].get<double>());
  EXPECT_LE(report["peak_memory"]["after"], 3 * 1024);
  EXPECT_LE(report["params"]["after"], 300);
  EXPECT_GT(report["params"]["after"], 150);
}

TEST_F(CliBudgets, WhatCannotBeReachedIsSaid) {
  const Json report = pruned("macs=90%,peak_ram=100");
  const std::string notes = report["notes"].dump();
  EXPECT_NE(notes.find("asked for at most 100 bytes of activations: no fewer than"),
            std::string::npos)
      << notes;
  EXPECT_EQ(notes.find("of the MACs"), std::string::npos) << notes;
}

TEST_F(CliBudgets, MistakesAreNamed) {
  const auto error = [&](const std::string& budget) {
    return place_.run("prune cnn.onnx -o o.onnx --budget " + budget).err;
  };
  EXPECT_EQ(error("macs=50%,macs=5"), "parsimony: --budget: two amounts of macs\n");
  const std::string of_blocks = error("peak_ram=2K --layers 1 --calibration random:8");
  EXPECT_EQ(
      of_blocks.find("parsimony: --layers does not support budgets of milliseconds, of bytes"), 0)
      << of_blocks;
  EXPECT_EQ(error("peak_ram --ratio 0.5"),
            "parsimony: --budget: found \"peak_ram\", expected \"channels\", \"params\", \"macs\", "
            "\"latency_ms\" or \"weights\"\n");
}

TEST_F(CliBudgets, InspectShowsMemory) {
  const Outcome outcome = place_.run("inspect cnn.onnx --memory");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(lines_with(outcome.out, "c2").find("3,584"), std::string::npos) << outcome.out;
  EXPECT_NE(lines_with(outcome.out, "c2").find("# peak"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("At most 3,584 bytes of activations"), std::string::npos)
      << outcome.out;
  EXPECT_NE(outcome.out.find("an arena for all of them takes 3,584.\n"), std::string::npos);
  const Json json = Json::parse(place_.run("inspect cnn.onnx --json").out);
  EXPECT_EQ(json["totals"]["peak_memory"], 3584);
  EXPECT_EQ(json["totals"]["arena"], 3584);
}

}  // namespace
}  // namespace parsimony::test
