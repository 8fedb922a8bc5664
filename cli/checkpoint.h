// --checkpoint: the checkpoint of a network is cut with the network.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "parsimony/checkpoints/cut.h"
#include "parsimony/cli/outputs.h"

namespace parsimony::cli {

struct CheckpointOptions {
  std::string in;
  std::string out;
  bool strict = false;
};

void add_checkpoint_options(CLI::App& command, CheckpointOptions& options);

/// Its files, for check_outputs.
void add_files(const CheckpointOptions& options, std::vector<NamedFile>& outputs,
               std::vector<NamedFile>& inputs);

/// A checkpoint between two moments: it is matched with the network before that is edited, and cut
/// once the plan is known. Without --checkpoint it does nothing.
class CheckpointJob {
 public:
  /// @throws ConfigError if one of the two files is missing; what open_checkpoint throws
  CheckpointJob(const CheckpointOptions& options, const Graph& graph);

  /// Writes the cut checkpoint. @throws what cut_checkpoint throws, IoError
  void write(const Plan& plan);

  std::string summary() const;  ///< lines for the terminal

 private:
  const CheckpointOptions& options_;
  std::unique_ptr<Checkpoint> checkpoint_;
  CheckpointMatch match_;
  CheckpointCut cut_;
};

/// `inspect` of a checkpoint.
void inspect_checkpoint(const std::string& path, bool as_json);

}  // namespace parsimony::cli
