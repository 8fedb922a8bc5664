#include "parsimony/base/shell.h"

#include <gtest/gtest.h>

namespace parsimony {
namespace {

TEST(Shell, SaysWhatACommandPrintedAndHowItEnded) {
  const ShellOutcome fine = run_shell("printf 'a b'", 10);
  EXPECT_EQ(fine.output, "a b");
  EXPECT_EQ(fine.failure, "");
  EXPECT_EQ(run_shell("exit 3", 10).failure, "exit code 3");
  EXPECT_EQ(run_shell("kill -9 $$", 10).failure, "it took too long") << "as timeout(1) has it";
}

TEST(Shell, StopsACommandThatTakesTooLong) {
  const ShellOutcome outcome = run_shell("echo 1; sleep 60", 1.5);
  EXPECT_TRUE(outcome.timed_out);
  EXPECT_EQ(outcome.output, "1\n");
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

TEST(Shell, FindsTheLastNumber) {
  EXPECT_EQ(last_number("warm-up 3\nmedian=12.5 ms (9 runs)"), 9);
  EXPECT_EQ(last_number("top-1: 71.3%\n"), 71.3);
  EXPECT_EQ(last_number("1.5 nan inf"), 1.5);
  EXPECT_FALSE(last_number("none"));
}

}  // namespace
}  // namespace parsimony
