#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/cli/command.h"
#include "tests/report/sample_sweep.h"
#include "tests/support/event_file.h"

namespace parsimony::test {
namespace {

using Json = nlohmann::json;

/// A folder with sweeps in folders of their own.
struct Sweeps {
  Sweeps() { add("run", sample_ledger()); }

  void add(const std::string& folder, const std::string& ledger) const {
    std::filesystem::create_directory(place / folder);
    place.write(folder + "/ledger.jsonl", ledger);
  }

  Workplace place;
};

TEST(CliReport, WritesFourFilesBesideTheLedger) {
  const Sweeps sweeps;
  const Outcome outcome = sweeps.place.run("report run");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("parameters     2,122,186"), std::string::npos) << outcome.out;
  for (const char* name : {"html", "md", "csv", "json"}) {
    const std::string file = std::string("run/report.") + name;
    EXPECT_TRUE(sweeps.place.has(file));
    EXPECT_NE(outcome.out.find("wrote " + file), std::string::npos) << outcome.out;
  }
  const Json report = Json::parse(sweeps.place.bytes("run/report.json"));
  EXPECT_EQ(report["parsimony_sweep"], 1);
  EXPECT_EQ(report["points"].size(), 33U);
  EXPECT_EQ(sweeps.place.bytes("run/ledger.jsonl"), sample_ledger());
}

TEST(CliReport, AFolderOfItsOwnAndATitle) {
  const Sweeps sweeps;
  const Outcome outcome = sweeps.place.run("-q report run --out made --title 'My <net>'");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "");
  EXPECT_FALSE(sweeps.place.has("run/report.html"));
  EXPECT_NE(sweeps.place.bytes("made/report.html").find("<h1>My &lt;net&gt;</h1>"),
            std::string::npos);
}

TEST(CliReport, ShardsAreOneReport) {
  const Sweeps sweeps;
  sweeps.add("a", sample_ledger({sample_point("l1", 0, 0), sample_point("l1", 0.5, 0)}));
  sweeps.add("b", sample_ledger({sample_point("l1", 0.5, 0), sample_point("l1", 0.6, 0)}));
  const Outcome outcome = sweeps.place.run("report a b");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(Json::parse(sweeps.place.bytes("a/report.json"))["points"].size(), 3U);
  EXPECT_FALSE(sweeps.place.has("b/report.json"));
}

TEST(CliReport, EventFilesForTensorBoard) {
  const Sweeps sweeps;
  const Outcome outcome = sweeps.place.run("report run --tensorboard logs/sweep");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(lines_with(outcome.out, "wrote runs"), "wrote runs in logs/sweep\n");
  const Points accuracy = read_run(sweeps.place / "logs/sweep/l1-seed2").at("test/accuracy");
  ASSERT_EQ(accuracy.size(), 6U);
  const auto share = static_cast<float>(sample_point("l1", 0.8, 2).after.share());
  EXPECT_EQ(accuracy.back(), std::pair(int64_t{80}, share));
  EXPECT_TRUE(sweeps.place.has("run/report.html"));

  const Outcome refused = sweeps.place.run("report run --out made --tensorboard cnn.onnx");
  EXPECT_EQ(refused.code, 4);
  EXPECT_EQ(refused.err.find("parsimony: cnn.onnx/"), 0U) << refused.err;
  EXPECT_NE(refused.err.find(": cannot be written: Not a directory"), std::string::npos);
  EXPECT_FALSE(sweeps.place.has("made/report.html"));
}

TEST(CliReport, AnUnfinishedLineIsANote) {
  const Sweeps sweeps;
  const std::string whole = sample_ledger();
  sweeps.add("torn", whole + whole.substr(0, 500));
  const Outcome outcome = sweeps.place.run("report torn");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(lines_with(outcome.out, "note:"),
            "note: torn/ledger.jsonl: the last line is incomplete and was skipped\n");
  EXPECT_NE(sweeps.place.bytes("torn/report.html").find("skipped"), std::string::npos);
}

TEST(CliReport, NoLedger) {
  const Sweeps sweeps;
  std::filesystem::create_directory(sweeps.place / "empty");
  const Outcome outcome = sweeps.place.run("report empty");
  EXPECT_EQ(outcome.code, 4);
  EXPECT_EQ(outcome.err,
            "parsimony: empty: has no ledger.jsonl; pass the folder of `parsimony sweep --out`\n");
  EXPECT_EQ(sweeps.place.run("report none").code, 4);
}

TEST(CliReport, ComparesReports) {
  const Workplace place;
  const std::string prune = "prune cnn.onnx -o o.onnx --no-verify ";
  ASSERT_EQ(place.run(prune + "--ratio 0.25 --report more.json").code, 0);
  ASSERT_EQ(place.run(prune + "--ratio 0.5 --report less.json").code, 0);
  const Outcome table = place.run("report less.json");
  EXPECT_EQ(table.code, 0) << table.err;
  EXPECT_TRUE(table.out.starts_with("### o.onnx\n")) << table.out;
  const Outcome better = place.run("report less.json --against more.json");
  EXPECT_EQ(better.code, 0) << better.err;
  EXPECT_NE(better.out.find("| baseline | change |"), std::string::npos) << better.out;
  const Outcome worse = place.run("report more.json --against less.json");
  EXPECT_EQ(worse.code, 1);
  EXPECT_EQ(worse.out.substr(0, 4), "### ");
  EXPECT_TRUE(worse.err.starts_with("parsimony: worse than less.json:\n  parameters: "))
      << worse.err;
  EXPECT_EQ(place.run("report more.json --against less.json --allow 300").code, 0);
}

TEST(CliReport, ComparesSweeps) {
  const Sweeps sweeps;
  ASSERT_EQ(sweeps.place.run("report run --out old").code, 0);
  const Outcome same = sweeps.place.run("report run --against old");
  EXPECT_EQ(same.code, 0) << same.err;
  EXPECT_NE(same.out.find("l1 at 50%: accuracy"), std::string::npos) << same.out;
  EXPECT_TRUE(sweeps.place.has("run/report.html"));
  EXPECT_EQ(sweeps.place.run("report run --against none").code, 4);
}

TEST(CliReport, NoPointYet) {
  const Sweeps sweeps;
  sweeps.add("begun", sample_ledger().substr(0, 500));
  const Outcome outcome = sweeps.place.run("report begun");
  EXPECT_EQ(outcome.code, 4);
  EXPECT_EQ(outcome.err,
            "parsimony: the ledger has no finished points yet; there is nothing to report\n");
  EXPECT_FALSE(sweeps.place.has("begun/report.html"));
}

TEST(CliReport, AnotherVersion) {
  const Sweeps sweeps;
  std::string ledger = sample_ledger();
  ledger.replace(ledger.find(":2,"), 3, ":9,");
  sweeps.add("new", ledger);
  const Outcome outcome = sweeps.place.run("report new");
  EXPECT_EQ(outcome.code, 3);
  EXPECT_EQ(outcome.err,
            "parsimony: new/ledger.jsonl:1: a ledger line of version 9, but this Parsimony reads "
            "versions 1 to 2\n");
}

TEST(CliReport, ContradictionsNameBothLines) {
  const Sweeps sweeps;
  LedgerPoint point = sample_point("l1", 0.5, 0);
  point.after.correct += 1;
  sweeps.add("other", sample_ledger({point}));
  const Outcome outcome = sweeps.place.run("report run other");
  EXPECT_EQ(outcome.code, 4);
  EXPECT_NE(outcome.err.find(" and other/ledger.jsonl:1 contradict each other about a point"),
            std::string::npos)
      << outcome.err;
}

TEST(CliReport, ADamagedLedgerIsNotGuessedAt) {
  const Sweeps sweeps;
  sweeps.add("bad", "rubbish\n" + sample_ledger());
  const Outcome outcome = sweeps.place.run("report bad");
  EXPECT_EQ(outcome.code, 4);
  EXPECT_TRUE(outcome.err.starts_with("parsimony: bad/ledger.jsonl:1:")) << outcome.err;
}

TEST(CliReport, AFolderThatCannotBeMade) {
  const Sweeps sweeps;
  EXPECT_EQ(sweeps.place.run("report run --out none/made").code, 4);
  EXPECT_EQ(sweeps.place.run("report run --out cnn.onnx").code, 4);
  EXPECT_EQ(sweeps.place.run("report").code, 2);
}

}  // namespace
}  // namespace parsimony::test
