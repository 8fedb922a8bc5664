#include "parsimony/report/ledger.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <filesystem>
#include <limits>

#include "parsimony/base/errors.h"
#include "parsimony/base/files.h"
#include "tests/report/sample_sweep.h"
#include "tests/support/fixture.h"
#include "tests/support/message_of.h"

namespace parsimony::test {
namespace {

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  const size_t at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  return text.replace(at, what.size(), by);
}

TEST(LedgerPoint, ComesBackAsItWas) {
  for (const LedgerPoint& point : sample_sweep()) {
    EXPECT_EQ(read_ledger_point(to_json_line(point), "here"), point);
  }
}

TEST(LedgerPoint, WhatHasNoNumberComesBack) {
  LedgerPoint point = sample_point("l1", 0.5, 7);
  point.epochs[0].loss = std::numeric_limits<double>::quiet_NaN();
  point.proof->difference = std::numeric_limits<double>::infinity();
  point.latency_ms.reset();
  EXPECT_EQ(read_ledger_point(to_json_line(point), "here"), point);
  point.proof = LedgerPoint::Evidence{false, 0, 0, {}, "--no-verify"};
  EXPECT_EQ(read_ledger_point(to_json_line(point), "here"), point);
  point.proof.reset();
  EXPECT_EQ(read_ledger_point(to_json_line(point), "here"), point);
  const double none = std::numeric_limits<double>::quiet_NaN();
  point.metrics = {
      {"wer.sh {model}", true, -3.5, "", "wer: -3.5\n", "data:image/png;base64,iVBORw=="},
      {"map.py {model}", false, none, "exit 1", "", ""}};
  EXPECT_EQ(read_ledger_point(to_json_line(point), "here"), point);
}

TEST(LedgerPoint, RanksComeBack) {
  LedgerPoint point = sample_point("l1", 0.5, 7);
  point.train.exchange = 1.25;
  point.ranks = LedgerPoint::Ranks{{8'488'744, 4'237'224}, {512.5, 498}};
  const std::string line = to_json_line(point);
  EXPECT_EQ(read_ledger_point(line, "here"), point);
  EXPECT_EQ(read_ledger_point(replaced(line, ",\"exchange\":1.25", ""), "old").train.exchange, 0);
  const std::string empty = replaced(line, "[512.5,498.0]", "[]");
  EXPECT_EQ(message_of<ModelError>([&] { read_ledger_point(empty, "a:1"); }),
            "a:1: ranks: there are no ranks");
}

TEST(LedgerPoint, ALineStaysALine) {
  LedgerPoint point = sample_point("l1", 0.5, 0);
  point.command = "parsimony sweep --out 'a\nb'";
  point.model.name = "\xff";  // no UTF-8
  const std::string line = to_json_line(point);
  EXPECT_EQ(line.find('\n'), std::string::npos);
  EXPECT_EQ(read_ledger_point(line, "here").command, point.command);
}

TEST(LedgerPoint, AWrongConfigIsRefused) {
  LedgerPoint point = sample_point("l1", 0.5, 0);
  point.config = "[1]";
  EXPECT_THROW(to_json_line(point), ConfigError);
}

TEST(LedgerPoint, FaultsAreNamedWithTheirPlace) {
  const std::string good = to_json_line(sample_point("l1", 0.5, 0));
  const auto fault = [&](const std::string& what, const std::string& by) {
    const std::string line = replaced(good, what, by);
    return message_of<ModelError>([&] { read_ledger_point(line, "a.jsonl:4"); });
  };
  EXPECT_EQ(fault("\"before\":2122186", "\"before\":-1"),
            "a.jsonl:4: params.before: found -1, expected a count");
  EXPECT_EQ(fault("\"sparsity\":0.5", "\"sparsity\":50"),
            "a.jsonl:4: point.sparsity: found 50, expected a number in [0, 1]");
  EXPECT_EQ(fault("\"fingerprint\"", "\"finger\""), "a.jsonl:4: data: lacks \"fingerprint\"");
  EXPECT_EQ(fault("\"axis\":\"fc1.weight[0]\"", "\"axis\":[]"),
            "a.jsonl:4: unpruned_dims[0].axis: found a list, expected a string");
  EXPECT_EQ(fault("\"pruned\":{\"correct\":", "\"pruned\":{\"correct\":90"),
            "a.jsonl:4: accuracy.pruned: more correct samples than samples");
  EXPECT_EQ(message_of<ModelError>([] { read_ledger_point("[]", "b:1"); }),
            "b:1: found a list, expected an object");
  const std::string deep = std::string(100000, '[') + std::string(100000, ']');
  EXPECT_EQ(message_of<ModelError>([&] { read_ledger_point("{\"a\":" + deep + "}", "b:1"); }),
            "b:1: is nested too deeply");
}

TEST(LedgerPoint, ReadsVersion1) {
  const LedgerPoint point = sample_point("l1", 0.5, 0);
  const std::string line =
      replaced(to_json_line(point), "\"parsimony_ledger\":2", "\"parsimony_ledger\":1");
  EXPECT_EQ(read_ledger_point(replaced(line, "\"unpruned_dims\"", "\"kept_whole\""), "a:1"), point);
}

TEST(LedgerPoint, ANewerVersionIsNotGuessedAt) {
  const std::string line = replaced(to_json_line(sample_point("l1", 0.5, 0)),
                                    "\"parsimony_ledger\":2", "\"parsimony_ledger\":3");
  EXPECT_EQ(message_of<UnsupportedError>([&] { read_ledger_point(line, "a:1"); }),
            "a:1: a ledger line of version 3, but this Parsimony reads versions 1 to 2");
}

TEST(Ledger, KeepsWhatIsAppended) {
  const TemporaryFolder folder;
  Ledger ledger(folder / "");
  EXPECT_TRUE(ledger.points().empty());
  const std::vector<LedgerPoint> points = sample_sweep();
  for (const LedgerPoint& point : points) EXPECT_TRUE(ledger.append(point));
  EXPECT_EQ(ledger.points(), points);
  EXPECT_EQ(read_file(ledger.path()), sample_ledger(points));
  EXPECT_TRUE(ledger.keys().contains(points[3].key));
}

TEST(Ledger, APointIsWrittenOnce) {
  const TemporaryFolder folder;
  Ledger ledger(folder / "");
  EXPECT_TRUE(ledger.append(sample_point("l1", 0.5, 0)));
  const std::string bytes = read_file(ledger.path());
  EXPECT_FALSE(ledger.append(sample_point("l1", 0.5, 0)));
  EXPECT_EQ(read_file(ledger.path()), bytes);
}

TEST(Ledger, AnUnfinishedLineIsPassedOverAndCut) {
  const std::string first = to_json_line(sample_point("l1", 0.2, 0)) + "\n";
  const std::string second = to_json_line(sample_point("l1", 0.4, 0));
  for (const size_t size : {size_t{1}, second.size() / 2, second.size() - 1}) {
    const TemporaryFolder folder;
    Ledger ledger(folder / "");
    write_file(ledger.path(), first + second.substr(0, size));
    const LedgerContent content = ledger.content();
    EXPECT_EQ(content.points.size(), 1U);
    EXPECT_EQ(content.notes, std::vector<std::string>{
                                 ledger.path() + ": the last line is incomplete and was skipped"});
    EXPECT_TRUE(ledger.append(sample_point("l1", 0.4, 0)));
    EXPECT_EQ(read_file(ledger.path()), first + second + "\n");
  }
}

TEST(Ledger, ALastLineWithoutNewlineCounts) {
  const TemporaryFolder folder;
  Ledger ledger(folder / "");
  write_file(ledger.path(), to_json_line(sample_point("l1", 0.2, 0)));
  EXPECT_EQ(ledger.content().points.size(), 1U);
  EXPECT_TRUE(ledger.content().notes.empty());
  EXPECT_TRUE(ledger.append(sample_point("l1", 0.4, 0)));
  EXPECT_EQ(ledger.points().size(), 2U);
}

TEST(Ledger, RubbishInTheMiddleIsNotPassedOver) {
  const TemporaryFolder folder;
  Ledger ledger(folder / "");
  write_file(ledger.path(), "{\"parsimony\n" + to_json_line(sample_point("l1", 0.2, 0)) + "\n");
  EXPECT_TRUE(message_of<ModelError>([&] {
                ledger.content();
              }).starts_with(ledger.path() + ":1:12: not JSON: "));
  EXPECT_THROW(ledger.append(sample_point("l1", 0.4, 0)), ModelError);
}

TEST(Ledger, AFolderThatIsNotThereIsAnError) {
  const TemporaryFolder folder;
  EXPECT_THROW(Ledger(folder / "none").append(sample_point("l1", 0.4, 0)), IoError);
}

/// Appends seeds `first`, `first` + `step`, … from a process of its own.
pid_t append_from_child(const std::string& folder, uint64_t first, uint64_t step, uint64_t end) {
  const pid_t child = fork();
  if (child != 0) return child;
  try {
    for (uint64_t seed = first; seed < end; seed += step) {
      Ledger(folder).append(sample_point("l1", 0.5, seed));
    }
  } catch (...) {
    _exit(1);
  }
  _exit(0);
}

TEST(Ledger, ProcessesAppendAtOnce) {
  const TemporaryFolder folder;
  constexpr uint64_t kPoints = 60;
  std::vector<pid_t> children;
  // Each point is offered by two of them.
  for (uint64_t c = 0; c < 4; ++c) {
    children.push_back(append_from_child(folder / "", c % 2, 2, kPoints));
  }
  for (const pid_t child : children) {
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  const std::string bytes = read_file(Ledger(folder / "").path());
  EXPECT_EQ(std::count(bytes.begin(), bytes.end(), '\n'), int64_t{kPoints});
  EXPECT_EQ(Ledger(folder / "").keys().size(), kPoints);
}

TEST(Ledger, AKilledProcessLosesNothingThatWasFinished) {
  const TemporaryFolder folder;
  Ledger ledger(folder / "");
  constexpr uint64_t kPoints = 100;
  for (int i = 0; i < 20; ++i) {
    const pid_t child = append_from_child(folder / "", 0, 1, kPoints);
    usleep(1000 * (1 + static_cast<unsigned>(i * 7 % 20)));
    const size_t finished = ledger.points().size();
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    EXPECT_GE(ledger.points().size(), finished);
  }
  const pid_t last = append_from_child(folder / "", 0, 1, kPoints);
  waitpid(last, nullptr, 0);
  const std::string bytes = read_file(ledger.path());
  EXPECT_EQ(std::count(bytes.begin(), bytes.end(), '\n'), int64_t{kPoints});
  EXPECT_EQ(ledger.points().size(), kPoints);
  EXPECT_TRUE(ledger.content().notes.empty());
}

struct TwoFolders {
  TwoFolders() : folders{parent / "a", parent / "b"} {
    for (const std::string& folder : folders) std::filesystem::create_directory(folder);
  }
  TemporaryFolder parent;
  std::vector<std::string> folders;
};

TEST(Ledger, FoldersMerge) {
  const TwoFolders two;
  LedgerPoint again = sample_point("l1", 0.5, 1);
  again.train.forward *= 2;  // another machine's times are no contradiction
  Ledger(two.folders[0]).append(sample_point("l1", 0.5, 0));
  Ledger(two.folders[0]).append(sample_point("l1", 0.5, 1));
  Ledger(two.folders[1]).append(again);
  Ledger(two.folders[1]).append(sample_point("l1", 0.5, 2));
  const LedgerContent content = merge_ledgers(two.folders);
  ASSERT_EQ(content.points.size(), 3U);
  EXPECT_EQ(content.points[1], sample_point("l1", 0.5, 1));
  EXPECT_EQ(merge_ledgers(std::vector{Ledger(two.folders[1]).path()}).points.size(), 2U);
}

TEST(Ledger, AContradictionNamesBothLines) {
  const TwoFolders two;
  Ledger a(two.folders[0]);
  Ledger b(two.folders[1]);
  LedgerPoint other = sample_point("l1", 0.5, 1);
  ++other.after.correct;
  a.append(sample_point("l1", 0.5, 1));
  b.append(sample_point("l1", 0.5, 0));
  b.append(other);
  EXPECT_EQ(message_of<ModelError>([&] { merge_ledgers(two.folders); }),
            a.path() + ":1 and " + b.path() +
                ":2 contradict each other about a point (key l1-50-1); remove the wrong line");
}

TEST(Ledger, AFolderWithoutLedgerIsNamed) {
  const TwoFolders two;
  const std::string message = message_of<IoError>([&] { merge_ledgers(two.folders); });
  EXPECT_EQ(message.find(two.folders[0] + ": has no ledger.jsonl"), 0U) << message;
}

}  // namespace
}  // namespace parsimony::test
