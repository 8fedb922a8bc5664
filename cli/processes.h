// Several processes that train one network: started here, or by a launcher.
#pragma once

#include <optional>
#include <string>

#include "parsimony/api/ranks.h"
#include "parsimony/cli/command.h"

namespace parsimony::cli {

struct RankOptions {
  int processes = 0;  ///< to start; 0: what a launcher says, or one
  std::string store;
  RankSettings settings;
};

void add_rank_options(CLI::App& command, RankOptions& options);
/// Which of them prove.
void add_rank_proof_option(CLI::App& command, RankOptions& options);
/// How a training's ranks work together.
void add_rank_training_options(CLI::App& command, RankOptions& options);

/// For commands to which a launcher's variables alone mean something else.
inline bool wants_ranks(const RankOptions& options) {
  return options.processes > 1 || !options.store.empty();
}

/// Where this process stands. With --processes, and without a launcher, the command starts itself
/// so many times, waits, and ends the process with the exit code of the first that failed: what
/// rank 0 prints is seen at once, what others print if they fail.
/// @throws ConfigError if a launcher names no place to meet and --store does not either
RankPlace ranks_of(const RankOptions& options, const Session& session);

/// Ranks of one machine share its cores, unless a number is given.
std::optional<int> threads_of(std::optional<int> given, const RankPlace& place);

}  // namespace parsimony::cli
