// Several processes: workers of one sweep, or ranks that train one network, started here or by a
// launcher.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "parsimony/api/ranks.h"
#include "parsimony/cli/command.h"

namespace parsimony::cli {

/// Starts `count` copies of the command with the same arguments. They terminate with this process.
class Workers {
 public:
  /// @throws IoError if one cannot be started
  Workers(int count, const std::vector<std::string>& words);
  /// Waits for all.
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  void wait();

 private:
  std::vector<pid_t> pids_;
};

/// Starts the command again with these arguments and additional variables "NAME=VALUE"; is_worker()
/// is true there. @param messages  file for its standard error; its standard output is then
/// discarded. Empty: both are inherited. @throws IoError
pid_t start_copy(const std::vector<std::string>& words,
                 const std::vector<std::string>& variables = {}, const std::string& messages = {});

/// Returns whether this process is a worker, and ties its lifetime to its parent's.
bool is_worker();

struct RankOptions {
  int processes = 0;  ///< to start; 0: set by a launcher, or one
  std::string store;
  RankSettings settings;
};

void add_rank_options(CLI::App& command, RankOptions& options);
/// Adds --verify, which selects the ranks that run the proof.
void add_rank_proof_option(CLI::App& command, RankOptions& options);
/// Adds all options of a training's ranks, including those for their cooperation.
void add_rank_training_options(CLI::App& command, RankOptions& options);

/// Returns whether ranks were requested, for commands that interpret a launcher's variables
/// differently.
inline bool wants_ranks(const RankOptions& options) {
  return options.processes > 1 || !options.store.empty();
}

/// Returns this process's place among the ranks. With --processes, and without a launcher, starts
/// the command so many times, waits, and ends the process with the exit code of the first that
/// failed: output of rank 0 is shown at once, that of others only if they fail.
/// @throws ConfigError if a launcher names no place to meet and --store does not either
RankPlace ranks_of(const RankOptions& options, const Session& session);

/// Divides the cores of a machine among its ranks, unless a number is specified.
std::optional<int> threads_of(std::optional<int> given, const RankPlace& place);

}  // namespace parsimony::cli
