#include "parsimony/base/shell.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace parsimony {
namespace {

TEST(Shell, SaysWhatACommandPrintedAndHowItEnded) {
  const ShellOutcome fine = run_shell("printf 'a b'", 10);
  EXPECT_EQ(fine.output, "a b");
  EXPECT_EQ(fine.failure, "");
  EXPECT_EQ(run_shell("exit 3", 10).failure, "exit code 3");
}

// How a command ended is not read from an exit code: any may be the command's own.
TEST(Shell, OnlyTimeIsATimeout) {
  const std::pair<const char*, const char*> endings[] = {
      {"kill -9 $$", "ended by signal 9: Killed"},
      {"sh -c 'kill -9 $$'; exit $?", "exit code 137: Killed"},
      {"kill -SEGV $$", "ended by signal 11: Segmentation fault"},
      {"exit 124", "exit code 124"},
      {"exit 255", "exit code 255"}};
  for (const auto& [command, failure] : endings) {
    const ShellOutcome outcome = run_shell(command, 60);
    EXPECT_EQ(outcome.failure, failure) << command;
    EXPECT_FALSE(outcome.timed_out) << command;
  }
}

TEST(Shell, StopsACommandThatTakesTooLong) {
  const ShellOutcome outcome = run_shell("echo 1; sleep 60", 1.5);
  EXPECT_TRUE(outcome.timed_out);
  EXPECT_EQ(outcome.output, "1\n");
  EXPECT_EQ(outcome.failure, "it took too long");
  EXPECT_TRUE(run_shell("trap 'exit 0' TERM; while :; do sleep 0.01; done", 0.2).timed_out);
}

TEST(Shell, StopsWhatACommandStarted) {
  const ShellOutcome outcome = run_shell("sleep 61 & echo $!; wait", 0.2);
  ASSERT_TRUE(outcome.timed_out);
  const std::string started = outcome.output.substr(0, outcome.output.size() - 1);
  // Whoever adopts it may leave a zombie for a while.
  const std::string removed = "for i in 1 2 3 4 5 6 7 8 9; do grep -qs '^State:.[^ZX]' /proc/" +
                              started + "/status || exit 0; sleep 0.2; done; exit 1";
  EXPECT_EQ(run_shell(removed, 10).failure, "");
}

TEST(Shell, DoesNotWaitForWhatACommandLeavesRunning) {
  const ShellOutcome outcome = run_shell("sleep 3 & echo 5; exec >&-", 60);
  EXPECT_EQ(outcome.output, "5\n");
  EXPECT_EQ(outcome.failure, "");
}

TEST(Shell, KeepsTheEndOfALongOutput) {
  const ShellOutcome outcome = run_shell("yes | head -c 1000000; echo 7", 10);
  EXPECT_LE(outcome.output.size(), size_t{1} << 17);
  EXPECT_TRUE(outcome.output.ends_with("y\n7\n"));
}

TEST(Shell, PathsAreWords) {
  const std::string odd = "it's $(a) \"file\".onnx";
  const std::string command = with_path("printf %s {model}, {model}", "{model}", odd);
  EXPECT_EQ(run_shell(command, 10).output, odd + "," + odd);
}

TEST(Shell, PathsWithinQuotesAreTheirText) {
  for (const std::string path : {"a b.onnx", "a; echo b", "it's", "say \"x\"",
                                 "$HOME `id` $(id) \\n", "'; id; '", "\"; id; \""}) {
    const auto printed = [&](const std::string& command) {
      return run_shell(with_path(command, "{model}", path), 10).output;
    };
    EXPECT_EQ(printed("printf %s {model}"), path);
    EXPECT_EQ(printed("printf %s '{model}'"), path);
    EXPECT_EQ(printed("printf %s \"{model}\""), path);
    EXPECT_EQ(printed("printf %s 'in {model}'.\"{model}\".{model}"),
              "in " + path + "." + path + "." + path);
    EXPECT_EQ(printed("printf %s \"it's {model}\""), "it's " + path);
    EXPECT_EQ(printed("printf %s \"\\\"{model}\\\"\""), '"' + path + '"');
    EXPECT_EQ(printed("printf %s \\'{model}"), "'" + path);
    EXPECT_EQ(printed("printf %s \"$(printf %s {model})\""), path);
    EXPECT_EQ(printed("printf %s \"$(printf %s \"{model}\" | (cat))\"'{model}'"), path + path);
    EXPECT_EQ(printed("x=`printf %s '{model}'`; printf %s \"$x\""), path);
  }
}

TEST(Shell, FindsTheLastNumber) {
  EXPECT_EQ(last_number("warm-up 3\nmedian=12.5 ms (9 runs)"), 9);
  EXPECT_EQ(last_number("top-1: 71.3%\n"), 71.3);
  EXPECT_EQ(last_number("1.5 nan inf"), 1.5);
  EXPECT_FALSE(last_number("none"));
}

}  // namespace
}  // namespace parsimony
