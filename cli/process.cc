#include "parsimony/cli/process.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <string_view>
#include <system_error>

#include "parsimony/cli/errors.h"

extern char** environ;  // NOLINT(readability-redundant-declaration): POSIX does not declare it

namespace parsimony::cli {
namespace {

IoError cannot_run(const std::string& program, int cause) {
  return errors::oracle_failed(program +
                               " cannot be run: " + std::generic_category().message(cause));
}

/// Both ends of a pipe, closed at the end.
class Pipe {
 public:
  explicit Pipe(const std::string& program) {
    if (pipe2(ends_.data(), O_CLOEXEC) != 0) throw cannot_run(program, errno);
  }
  ~Pipe() {
    for (const int end : ends_) {
      if (end >= 0) close(end);
    }
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  int reading() const { return ends_[0]; }
  int writing() const { return ends_[1]; }
  void close_writing() {
    close(ends_[1]);
    ends_[1] = -1;
  }

 private:
  std::array<int, 2> ends_{-1, -1};
};

/// Appends what there is to read; false at the end.
bool read_some(int descriptor, std::string& text) {
  std::array<char, 4096> buffer;
  const ssize_t n = read(descriptor, buffer.data(), buffer.size());
  if (n > 0) text.append(buffer.data(), n);
  return n > 0 || (n < 0 && errno == EINTR);
}

/// Reads both, as either could fill up while the other is waited for.
void drain(const Pipe& out, const Pipe& err, Finished& finished) {
  std::array<pollfd, 2> polled{{{out.reading(), POLLIN, 0}, {err.reading(), POLLIN, 0}}};
  const std::array<std::string*, 2> texts{&finished.out, &finished.err};
  while (polled[0].fd >= 0 || polled[1].fd >= 0) {
    if (poll(polled.data(), polled.size(), -1) < 0 && errno != EINTR) return;
    for (size_t i = 0; i < polled.size(); ++i) {
      if (polled[i].fd < 0 || polled[i].revents == 0) continue;
      if (!read_some(polled[i].fd, *texts[i])) polled[i].fd = -1;  // poll skips negative ones
    }
  }
}

pid_t spawn(const std::vector<std::string>& arguments, const Pipe& out, const Pipe& err) {
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out.writing(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, err.writing(), STDERR_FILENO);
  pid_t child = -1;
  const int error = posix_spawn(&child, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) throw cannot_run(arguments[0], error);
  return child;
}

}  // namespace

std::optional<std::string> find_program(const std::string& name) {
  const char* path = std::getenv("PATH");
  std::string_view rest = path == nullptr ? "" : path;
  while (!rest.empty()) {
    const size_t colon = rest.find(':');
    const std::string folder(rest.substr(0, colon));
    const std::string candidate = (folder.empty() ? "." : folder) + "/" + name;
    if (access(candidate.c_str(), X_OK) == 0) return candidate;
    rest = colon == std::string_view::npos ? std::string_view{} : rest.substr(colon + 1);
  }
  return std::nullopt;
}

Finished run_program(const std::vector<std::string>& arguments) {
  Pipe out(arguments[0]);
  Pipe err(arguments[0]);
  const pid_t child = spawn(arguments, out, err);
  out.close_writing();
  err.close_writing();
  Finished finished;
  drain(out, err, finished);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  finished.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return finished;
}

}  // namespace parsimony::cli
