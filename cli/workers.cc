#include "parsimony/cli/workers.h"

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
constexpr std::string_view kVariable = "PARSIMONY_SWEEP_WORKER";

/// Pointers to `texts`, and a null at the end.
std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (std::string& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

}  // namespace

Workers::Workers(int count, const std::vector<std::string>& words) {
  std::vector<std::string> arguments = words;
  // Not setenv: libtorch's threads may be reading the environment.
  std::vector<std::string> environment;
  for (char** each = environ; *each != nullptr; ++each) environment.emplace_back(*each);
  environment.push_back(std::string(kVariable) + "=" + std::to_string(getpid()));
  for (int i = 0; i < count; ++i) {
    pid_t pid = 0;
    const int error = posix_spawn(&pid, "/proc/self/exe", nullptr, nullptr,
                                  pointers(arguments).data(), pointers(environment).data());
    if (error != 0) throw errors::cannot_start("a worker", std::strerror(error));
    pids_.push_back(pid);
  }
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
