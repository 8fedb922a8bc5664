// A command that runs beside the test, until it is killed.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <csignal>
#include <string>

#include "tests/cli/command.h"

namespace parsimony::test {

/// `parsimony ARGUMENTS` in the folder of `place`, in a process group of its own. What it says on
/// standard error stands in the folder's file "said".
class Background {
 public:
  /// @param variables  "NAME=VALUE …" of its environment
  Background(const Workplace& place, const std::string& arguments,
             const std::string& variables = "");
  /// Kills what is left.
  ~Background();
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;

  /// Waits until it has said this many lines that hold `text`, or has ended. False if it has ended.
  bool says(const std::string& text, int lines = 1);
  /// A signal to the command alone. Waits for its end.
  void kill(int signal = SIGKILL);
  /// SIGKILL to the command and to all that it has started. Waits for their end.
  void kill_all();
  /// Is anybody of its group alive?
  bool group_lives() const;
  /// Its exit code; -1 if a signal ended it.
  int wait();

 private:
  bool ended();

  const Workplace& place_;
  pid_t pid_ = 0;
  int status_ = 0;
  bool reaped_ = false;
};

}  // namespace parsimony::test
