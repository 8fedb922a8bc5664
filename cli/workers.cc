#include "parsimony/cli/workers.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "parsimony/cli/errors.h"

extern char** environ;  // NOLINT(readability-redundant-declaration): POSIX does not declare it

namespace parsimony::cli {
namespace {

/// Holds the process id of the one that started the worker.
constexpr std::string_view kVariable = "PARSIMONY_PARENT";

/// Pointers to `texts`, and a null at the end.
std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (std::string& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

}  // namespace

pid_t start_copy(const std::vector<std::string>& words, const std::vector<std::string>& variables,
                 const std::string& messages) {
  std::vector<std::string> arguments = words;
  // Not setenv: libtorch's threads may be reading the environment.
  std::vector<std::string> environment = variables;
  for (char** each = environ; *each != nullptr; ++each) environment.emplace_back(*each);
  environment.push_back(std::string(kVariable) + "=" + std::to_string(getpid()));
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  if (!messages.empty()) {
    constexpr mode_t kOwn = 0600;
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, messages.c_str(),
                                     O_WRONLY | O_CREAT | O_TRUNC, kOwn);
  }
  pid_t pid = 0;
  const int error = posix_spawn(&pid, "/proc/self/exe", &actions, nullptr,
                                pointers(arguments).data(), pointers(environment).data());
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) throw errors::cannot_start("a worker", std::strerror(error));
  return pid;
}

Workers::Workers(int count, const std::vector<std::string>& words) {
  for (int i = 0; i < count; ++i) pids_.push_back(start_copy(words));
}

Workers::~Workers() { wait(); }

void Workers::wait() {
  for (const pid_t pid : pids_) {
    while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  pids_.clear();
}

bool is_worker() {
  const char* owner = std::getenv(kVariable.data());
  if (owner == nullptr) return false;
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  // It may be gone already.
  if (getppid() != std::atoi(owner)) _exit(EXIT_FAILURE);
  return true;
}

}  // namespace parsimony::cli
