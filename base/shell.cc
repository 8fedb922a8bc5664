#include "parsimony/base/shell.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <thread>
#include <utility>
#include <vector>

#include "parsimony/base/parse.h"

extern char** environ;

namespace parsimony {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kMostOutput = 1 << 16;
constexpr auto kGrace = std::chrono::seconds(5);  // between SIGTERM and SIGKILL
constexpr auto kLook = std::chrono::milliseconds(20);
constexpr int kSignalled = 128;  // a shell's exit code for a signal, less its number

/// A command in a process group of its own, and the pipe that it writes to.
class ShellProcess {
 public:
  explicit ShellProcess(const std::string& command) {
    std::array<int, 2> ends{};
    if (pipe2(ends.data(), O_CLOEXEC) != 0) return;
    pipe_ = ends[0];
    fcntl(pipe_, F_SETFL, O_NONBLOCK);
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, ends[1], STDOUT_FILENO);
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    const std::array<const char*, 4> words = {"sh", "-c", command.c_str(), nullptr};
    const auto argv = const_cast<char* const*>(words.data());
    if (posix_spawn(&group_, "/bin/sh", &files, &attributes, argv, environ) != 0) group_ = -1;
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&files);
    close(ends[1]);
  }
  ~ShellProcess() {
    if (pipe_ >= 0) close(pipe_);
  }
  ShellProcess(const ShellProcess&) = delete;
  ShellProcess& operator=(const ShellProcess&) = delete;

  bool started() const { return group_ > 0; }

  /// Until the shell ends; what it left running may go on. @returns false at the deadline
  bool finish(Clock::time_point deadline, std::string& output) {
    for (;;) {
      // Before reading, so that nothing is missed that it wrote at the end.
      const bool ended = waitpid(group_, &status_, WNOHANG) != 0;
      read_all(output);
      if (ended) return true;
      if (Clock::now() >= deadline) return false;
      wait_for_output();
    }
  }
  void signal(int number) const { kill(-group_, number); }
  int status() const { return status_; }

 private:
  void read_all(std::string& output) {
    std::array<char, 4096> buffer;
    while (pipe_ >= 0) {
      const ssize_t count = read(pipe_, buffer.data(), buffer.size());
      if (count < 0) return;
      if (count == 0) {
        close(std::exchange(pipe_, -1));
        return;
      }
      output.append(buffer.data(), count);
      if (output.size() > 2 * kMostOutput) output.erase(0, output.size() - kMostOutput);
    }
  }
  void wait_for_output() const {
    if (pipe_ < 0) return std::this_thread::sleep_for(kLook / 10);
    pollfd output{pipe_, POLLIN, 0};
    poll(&output, 1, static_cast<int>(kLook.count()));
  }

  pid_t group_ = -1;
  int pipe_ = -1;
  int status_ = 0;
};

/// Returns how the command ended; empty if it succeeded.
std::string failure_of(int status) {
  const auto signal_name = [](int number) { return std::string(strsignal(number)); };
  if (WIFSIGNALED(status)) {
    return "ended by signal " + std::to_string(WTERMSIG(status)) + ": " +
           signal_name(WTERMSIG(status));
  }
  const int code = WEXITSTATUS(status);
  if (code == 0) return {};
  const std::string text = "exit code " + std::to_string(code);
  const bool signalled = code > kSignalled && code < kSignalled + SIGRTMIN;
  return signalled ? text + ": " + signal_name(code - kSignalled) : text;
}

/// The quotes and substitutions that surround a place in a line of shell.
class Quoting {
 public:
  void read(char c) {
    const char before = std::exchange(before_, c);
    if (innermost() == '\'') {
      if (c == '\'') open_.pop_back();
    } else if (before == '\\') {
      before_ = 0;  // it is taken as it is
    } else if (c == '"' || c == '`' || (c == '\'' && innermost() != '"')) {
      innermost() == c ? open_.pop_back() : open_.push_back(c);
    } else if (c == '(' && (before == '$' || innermost() == '(')) {
      open_.push_back(c);
    } else if (c == ')' && innermost() == '(') {
      open_.pop_back();
    }
  }

  /// `text` as part of a word, so that the shell makes it `text` again.
  std::string literal(std::string_view text) const {
    std::string result = shell_word(text);
    if (innermost() == '\'') result = result.substr(1, result.size() - 2);
    if (innermost() == '"') result = escaped(text, "\\$`\"");
    for (const char c : open_) {
      if (c == '`') result = escaped(result, "\\$`");
    }
    return result;
  }

 private:
  char innermost() const { return open_.empty() ? 0 : open_.back(); }

  static std::string escaped(std::string_view text, std::string_view special) {
    std::string result;
    for (const char c : text) {
      if (special.find(c) != std::string_view::npos) result += '\\';
      result += c;
    }
    return result;
  }

  std::vector<char> open_;  ///< ' " ` and ( of substitutions, the innermost last
  char before_ = 0;
};

}  // namespace

ShellOutcome run_shell(const std::string& command, double seconds) {
  std::fflush(nullptr);
  ShellOutcome outcome;
  ShellProcess process(command);
  if (!process.started()) {
    outcome.failure = "it cannot be started";
    return outcome;
  }
  // A number of seconds may be more than the clock can count.
  const auto allowed = std::chrono::duration<double>(std::min(seconds, 1e9));
  const auto deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(allowed);
  outcome.timed_out = !process.finish(deadline, outcome.output);
  if (!outcome.timed_out) {
    outcome.failure = failure_of(process.status());
    return outcome;
  }
  outcome.failure = "it took too long";
  process.signal(SIGTERM);
  const bool ended = process.finish(Clock::now() + kGrace, outcome.output);
  process.signal(SIGKILL);  // also what the shell left behind
  if (!ended) process.finish(Clock::time_point::max(), outcome.output);
  return outcome;
}

std::string shell_word(std::string_view text) {
  std::string word = "'";
  for (const char c : text) word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return word + "'";
}

std::string with_path(std::string_view command, std::string_view name, const std::string& path) {
  std::string result;
  Quoting quoting;
  for (size_t i = 0; i < command.size();) {
    if (command.substr(i).starts_with(name)) {
      result += quoting.literal(path);
      i += name.size();
    } else {
      quoting.read(command[i]);
      result += command[i++];
    }
  }
  return result;
}

std::optional<double> last_number(std::string_view text) {
  constexpr std::string_view kBetween = " \t\r\n,;:=()[]%";
  std::optional<double> found;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find_first_of(kBetween, begin), text.size());
    const auto number = number_of<double>(text.substr(begin, end - begin));
    if (number && std::isfinite(*number)) found = number;
    begin = end + 1;
  }
  return found;
}

}  // namespace parsimony
