// --checkpoint: the checkpoint of a network is cut with the network.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "parsimony/base/files.h"
#include "parsimony/checkpoints/cut.h"
#include "parsimony/cli/outputs.h"
#include "parsimony/engines/editable_model.h"
#include "parsimony/report/prune_report.h"

namespace parsimony::cli {

struct CheckpointOptions {
  std::string in;
  std::string out;
  std::string weights_from = "model";  ///< or "checkpoint": whose weights are pruned
  bool strict = false;
};

void add_checkpoint_options(CLI::App& command, CheckpointOptions& options);

/// Its files, for check_outputs.
void add_files(const CheckpointOptions& options, std::vector<NamedFile>& outputs,
               std::vector<NamedFile>& inputs);

/// The options if a checkpoint may stand in place of the model: it is then what is cut, and
/// `output` is another checkpoint unless it is called ".onnx". @throws ConfigError if --checkpoint
/// is given too
CheckpointOptions resolved(const CheckpointOptions& options, const std::string& model,
                           const std::string& output);

/// A checkpoint between two moments: it is matched with the network before that is edited, and cut
/// once the plan is known. Without --checkpoint it does nothing.
class CheckpointJob {
 public:
  /// @throws ConfigError if one of the two files is missing; what open_checkpoint throws
  CheckpointJob(CheckpointOptions options, const Graph& graph);

  /// Whose weights are pruned: with --weights-from checkpoint the model, opened again with those of
  /// the checkpoint, else itself.
  std::unique_ptr<EditableFile> weighted(std::unique_ptr<EditableFile> model,
                                         const std::vector<std::string>& specs);

  /// Writes the checkpoint, cut, where --checkpoint-out says or to `path`.
  /// @throws what cut_checkpoint throws, IoError
  void write(const Plan& plan) { write(plan, options_.out); }
  void write(const Plan& plan, const std::string& path);

  std::string summary() const;                     ///< lines for the terminal
  std::optional<CheckpointReport> report() const;  ///< empty without --checkpoint

 private:
  CheckpointOptions options_;
  std::unique_ptr<TemporaryFolder> folder_;  ///< of the model with other weights
  std::unique_ptr<Checkpoint> checkpoint_;
  CheckpointMatch match_;
  CheckpointCut cut_;
  bool is_cut_ = false;  ///< `checkpoint_`
  std::vector<std::string> notes_;
};

/// The model in the file `path` with new weights. @throws what the model's editor and open_model do
std::unique_ptr<EditableFile> reopened(EditableFile& model,
                                       const std::vector<TensorUpdate>& weights,
                                       const std::string& path,
                                       const std::vector<std::string>& specs);

/// `inspect` of a checkpoint.
void inspect_checkpoint(const std::string& path, bool as_json);

}  // namespace parsimony::cli
