#include "parsimony/cli/processes.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>
#include <string_view>
#include <thread>
#include <vector>

#include "parsimony/base/errors.h"
#include "parsimony/base/files.h"
#include "parsimony/cli/options.h"
#include "parsimony/engines/machine/processor.h"

extern char** environ;  // NOLINT(readability-redundant-declaration): POSIX does not declare it

namespace parsimony::cli {
namespace {

/// Holds the process id of the worker's parent.
constexpr std::string_view kVariable = "PARSIMONY_PARENT";

/// Returns pointers to `texts`, terminated by null.
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
  if (error != 0) throw IoError("cannot start a worker: ", std::strerror(error));
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
  // It may have ended already.
  if (getppid() != std::atoi(owner)) _exit(EXIT_FAILURE);
  return true;
}

}  // namespace parsimony::cli

namespace parsimony::cli {
namespace {

using Clock = std::chrono::steady_clock;

// After one has failed, the others notice that its connections are closed.
constexpr std::chrono::seconds kGrace{20};
constexpr std::chrono::milliseconds kPoll{20};

constexpr const char* kGroup = "Several processes";  // of options

volatile std::sig_atomic_t interrupted = 0;

/// Several processes of this command.
class Processes {
 public:
  Processes(int count, const Session& session) : count_(count), session_(session) {}

  /// @returns the exit code
  int run() {
    for (const int signal : {SIGINT, SIGTERM}) {
      std::signal(signal, [](int which) { interrupted = which; });
    }
    for (int rank = 0; rank < count_; ++rank) start(rank);
    std::optional<int> code;
    Clock::time_point failed;
    while (!running_.empty()) {
      int status = 0;
      const pid_t process = waitpid(-1, &status, WNOHANG);
      if (process <= 0) {
        if (interrupted != 0 && !code) {
          code = 128 + interrupted;
          failed = Clock::now();
          stop(SIGTERM);
        }
        if (code && Clock::now() - failed > kGrace) stop(SIGKILL);
        std::this_thread::sleep_for(kPoll);
        continue;
      }
      const auto ended = running_.find(process);
      if (ended == running_.end()) continue;
      const int rank = ended->second;
      running_.erase(ended);
      const int own = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
      if (own == 0 || code) continue;
      code = own;
      failed = Clock::now();
      tell(rank, process, status);
    }
    return code.value_or(0);
  }

 private:
  std::string file(const std::string& name) const { return (folder_.path() / name).string(); }
  std::string errors_of(int rank) const { return file("rank" + std::to_string(rank)); }

  void start(int rank) {
    const auto number = [](const char* name, int value) {
      return std::string(name) + "=" + std::to_string(value);
    };
    // Files of a killed rank are removed with the folder.
    const std::vector<std::string> variables = {
        number("RANK", rank), number("WORLD_SIZE", count_), number("LOCAL_WORLD_SIZE", count_),
        "PARSIMONY_STORE=file:" + file("store"), "TMPDIR=" + folder_.path().string()};
    running_[start_copy(session_.words, variables, rank == 0 ? "" : errors_of(rank))] = rank;
  }

  void tell(int rank, pid_t process, int status) const {
    if (WIFSIGNALED(status)) {
      std::fprintf(stderr, "parsimony: rank %d (process %d) was terminated by signal %d\n", rank,
                   static_cast<int>(process), WTERMSIG(status));
    }
    if (rank == 0 || !std::filesystem::exists(errors_of(rank))) return;
    const std::string text = read_file(errors_of(rank));
    if (!text.empty()) std::fprintf(stderr, "rank %d: %s", rank, text.c_str());
  }

  void stop(int signal) const {
    for (const auto& [process, rank] : running_) kill(process, signal);
  }

  const int count_;
  const Session& session_;
  const TemporaryFolder folder_;
  std::map<pid_t, int> running_;  ///< the ranks
};

}  // namespace

void add_rank_options(CLI::App& command, RankOptions& options) {
  const auto add = [&](const char* name, auto& value, const char* type, const char* meaning) {
    return add_option(command, name, value, type, meaning)->group(kGroup);
  };
  add("--processes", options.processes, "N",
      "Run in N processes on this machine, each with its share of every batch; or start the "
      "command with torchrun --no_python, srun or mpirun")
      ->check(within({.lowest = 1, .highest = 1024}));
  add("--store", options.store, "PLACE",
      "Rendezvous of processes that a launcher starts: file:PATH in a shared folder, or "
      "tcp:HOST:PORT (default: MASTER_ADDR and MASTER_PORT)");
  add("--rank-timeout", options.settings.timeout, "S",
      "Time limit for waiting on other processes, in seconds (default: 600)")
      ->check(above_zero());
}

void add_rank_proof_option(CLI::App& command, RankOptions& options) {
  command
      .add_option_function<std::string>(
          "--verify",
          [&options](const std::string& which) { options.settings.all_verify = which == "all"; },
          "Processes that run verification: first (default) or all")
      ->check(any_of({"first", "all"}))
      ->group(kGroup);
}

void add_rank_training_options(CLI::App& command, RankOptions& options) {
  add_rank_options(command, options);
  add_rank_proof_option(command, options);
  const auto flag = [&](const char* name, bool& value, const char* meaning) {
    command.add_flag(name, value, meaning)->group(kGroup);
  };
  flag("--local-batch-norm", options.settings.local_norms,
       "Compute BatchNorm statistics from each process's share of a batch only");
  flag("--half-gradients", options.settings.half_gradients,
       "Send gradients as float16: half the traffic, for slow connections; Gloo sums them slowly");
}

std::optional<int> threads_of(std::optional<int> given, const RankPlace& place) {
  if (given || !place.several()) return given;
  return std::max(1, static_cast<int>(machine::these_cores().usable()) / place.local_size);
}

RankPlace ranks_of(const RankOptions& options, const Session& session) {
  RankPlace place = ranks_of_environment().value_or(RankPlace());
  place.settings = options.settings;
  if (!options.store.empty()) {
    place.store = options.store;
    place.store_is_open = false;
  }
  if (place.several()) {
    if (place.store.empty()) {
      throw ConfigError(
          "the launcher does not set a rendezvous; pass --store file:PATH in a shared folder or "
          "--store tcp:HOST:PORT, or set MASTER_ADDR and MASTER_PORT");
    }
    is_worker();  // ends with the process that started it
    return place;
  }
  if (options.processes <= 1) return place;
  const int code = Processes(options.processes, session).run();
  std::fflush(nullptr);
  std::_Exit(code);
}

}  // namespace parsimony::cli
