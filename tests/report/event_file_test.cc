#include "parsimony/report/event_file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <chrono>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <limits>
#include <stdexcept>

#include "parsimony/base/errors.h"
#include "parsimony/base/files.h"
#include "parsimony/report/sweep/summary.h"
#include "tests/report/sample_sweep.h"
#include "tests/support/event_file.h"
#include "tests/support/message_of.h"
#include "tests/support/temporary_folder.h"

namespace parsimony::test {
namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// Every file of TensorFlow begins with these bytes: the length 24, its masked checksum.
TEST(EventFile, BeginsLikeTensorFlows) {
  const TemporaryFolder folder;
  const EventFile events(folder / "run");
  const std::string bytes = read_file(events.path());
  EXPECT_EQ(bytes.substr(0, 13), std::string("\x18\0\0\0\0\0\0\0\xa3\x7fK\"\t", 13));
  EXPECT_EQ(bytes.size(), 8U + 4 + 24 + 4);
  EXPECT_EQ(bytes.substr(21, 15), "\x1a\rbrain.Event:2");
}

TEST(EventFile, IsNamedAsTensorBoardLooksForIt) {
  const TemporaryFolder folder;
  const EventFile events(folder / "logs/run");
  const std::string name = std::filesystem::path(events.path()).filename().string();
  const std::string beginning = "events.out.tfevents.";
  ASSERT_EQ(name.find(beginning), 0U) << name;
  size_t digits = 0;
  EXPECT_NEAR(std::stod(name.substr(beginning.size()), &digits), now(), 60);
  EXPECT_EQ(name[beginning.size() + digits - 1], '.') << name;
}

TEST(EventFile, GivesBackWhatWasAddedBeforeItIsClosed) {
  const TemporaryFolder folder;
  EventFile events(folder / "run");
  const double begin = now();
  events.add(300, {{"train/loss", 0.5}, {"test/accuracy", 0.25}});
  ASSERT_EQ(read_events(read_file(events.path())).size(), 2U);
  const std::string tag(200, 't');  // a length of two bytes
  events.add(int64_t{1} << 40, {{tag, -1e30}, {"", std::numeric_limits<double>::quiet_NaN()}});
  const std::vector<Event> read = read_events(read_file(events.path()));
  ASSERT_EQ(read.size(), 3U);
  EXPECT_EQ(read[0].file_version, "brain.Event:2");
  EXPECT_EQ(read[0].scalars.size(), 0U);
  EXPECT_EQ(read[1].step, 300);
  EXPECT_EQ(read[1].file_version, "");
  EXPECT_EQ(read[1].scalars,
            (std::map<std::string, float>{{"train/loss", 0.5F}, {"test/accuracy", 0.25F}}));
  EXPECT_GE(read[1].wall_time, begin);
  EXPECT_LE(read[1].wall_time, read[2].wall_time);
  EXPECT_LE(read[2].wall_time, now());
  EXPECT_EQ(read[2].step, int64_t{1} << 40);
  EXPECT_EQ(read[2].scalars.at(tag), -1e30F);
  EXPECT_TRUE(std::isnan(read[2].scalars.at("")));
}

TEST(EventFile, EveryDamageShowsInAChecksum) {
  const TemporaryFolder folder;
  EventFile events(folder / "run");
  events.add(1, {{"loss", 2}});
  const std::string bytes = read_file(events.path());
  for (size_t at = 0; at < bytes.size(); ++at) {
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ 1);
    EXPECT_THROW(read_events(damaged), std::runtime_error) << at;
  }
}

TEST(EventFile, ARunThatIsResumedHasAnother) {
  const TemporaryFolder folder;
  EventFile first(folder / "run");
  first.add(1, {{"loss", 2}});
  EventFile second(folder / "run");
  second.add(2, {{"loss", 1}});
  EXPECT_LT(first.path(), second.path());
  EXPECT_EQ(event_files(folder / "run").size(), 2U);
  EXPECT_EQ(read_run(folder / "run").at("loss"), (Points{{1, 2}, {2, 1}}));
}

TEST(EventFile, AFolderThatCannotBeMadeIsNamed) {
  const TemporaryFolder folder;
  write_file(folder / "file", "");
  for (const char* name : {"file", "file/run"}) {
    EXPECT_EQ(message_of<IoError>([&] { EventFile(folder / name); }),
              folder / name + ": cannot be written: Not a directory");
  }
}

TEST(EventFile, AFullDiskIsAnErrorOfThatFile) {
  const TemporaryFolder folder;
  EventFile events(folder / "run");
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit full{100, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &full);
  const std::string message = message_of<IoError>([&] {
    events.add(1, {{std::string(100, 't'), 1}});
  });
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(message, events.path() + ": cannot be written: File too large");
}

TEST(EventFile, ASweepIsARunForEachCriterionAndSeed) {
  const TemporaryFolder folder;
  const SweepReport report = summarise({sample_sweep(), {}});
  write_events(report, folder / "logs");
  Points accuracy;
  Points params;
  for (const int percent : {0, 20, 40, 50, 60, 80}) {
    const LedgerPoint point = sample_point("l1", percent / 100.0, 1);
    accuracy.emplace_back(percent, static_cast<float>(point.after.share()));
    params.emplace_back(percent, static_cast<float>(point.params.after));
  }
  const std::map<std::string, Points> run = read_run(folder / "logs/l1-seed1");
  EXPECT_EQ(run.at("test/accuracy"), accuracy);
  EXPECT_EQ(run.at("model/parameters"), params);
  for (const char* tag :
       {"model/macs", "model/bytes", "model/latency_ms", "train/seconds", "test/accuracy_change"}) {
    EXPECT_EQ(run.at(tag).size(), 6U) << tag;
  }
  EXPECT_EQ(run.count("test/perplexity"), 0U);
  EXPECT_EQ(read_run(folder / "logs/random-seed2").at("test/accuracy").size(), 6U);
  EXPECT_EQ(read_run(folder / "logs/dense-seed0").at("test/accuracy").size(), 1U);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder / "logs"), {}), 9);
}

TEST(EventFile, WhatAPointDoesNotHaveIsLeftOut) {
  const TemporaryFolder folder;
  LedgerPoint with = sample_point("l1", 0.125, 0);
  LedgerPoint without = sample_point("l1", 0.5, 0);
  with.after.perplexity = 4.5;
  with.metrics = {{"score {model}", false, 7, {}, {}, {}}};
  without.params = without.macs = {};
  without.latency_ms.reset();
  write_events(summarise({{with, without}, {}}), folder / "logs");
  const std::map<std::string, Points> run = read_run(folder / "logs/l1-seed0");
  EXPECT_EQ(run.at("test/accuracy").size(), 2U);
  EXPECT_EQ(run.at("test/perplexity"), (Points{{13, 4.5F}}));
  EXPECT_EQ(run.at("metric/score {model}"), (Points{{13, 7}}));
  EXPECT_EQ(run.at("model/parameters").size(), 1U);
  EXPECT_EQ(run.at("model/macs").size(), 1U);
  EXPECT_EQ(run.at("model/latency_ms").size(), 1U);
}

TEST(EventFile, ACriterionIsNoPath) {
  const TemporaryFolder folder;
  LedgerPoint up = sample_point("../../up", 0.5, 0);
  LedgerPoint cut = sample_point(std::string("..\0", 3), 0.5, 0);
  up.key = "up";
  write_events(summarise({{up, cut}, {}}), folder / "logs");
  EXPECT_EQ(folder.names(), std::vector<std::string>{"logs"});
  EXPECT_EQ(event_files(folder / "logs/.._.._up-seed0").size(), 1U);
  EXPECT_EQ(event_files(folder / "logs/.._-seed0").size(), 1U);
}

}  // namespace
}  // namespace parsimony::test
