// --checkpoint: prunes the checkpoint of a network along with the network.
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

/// Adds the files of the options, for check_outputs().
void add_files(const CheckpointOptions& options, std::vector<NamedFile>& outputs,
               std::vector<NamedFile>& inputs);

/// Resolves the options if the model may be a checkpoint: that is then pruned, and `output` is a
/// checkpoint unless its name ends in ".onnx". @throws ConfigError if --checkpoint is set too
CheckpointOptions resolved(const CheckpointOptions& options, const std::string& model,
                           const std::string& output);

/// Prunes a checkpoint along with the model: matches it with the network before the edit, and cuts
/// it once the plan is known. Does nothing without --checkpoint.
class CheckpointJob {
 public:
  /// @throws ConfigError if one of the two files is missing; what open_checkpoint throws
  CheckpointJob(CheckpointOptions options, const Graph& graph);

  /// Returns the model whose weights are pruned: with --weights-from checkpoint, the model reopened
  /// with the checkpoint's weights, otherwise the model itself.
  std::unique_ptr<EditableFile> weighted(std::unique_ptr<EditableFile> model,
                                         const std::vector<std::string>& specs);

  /// A job for a checkpoint without a network, whose tensors have the names of the plan's. Returns
  /// empty if they have not.
  static std::optional<CheckpointJob> by_name(CheckpointOptions options, const Plan& plan);

  std::string_view format() const { return checkpoint_->format(); }

  /// Writes the pruned checkpoint to the path of --checkpoint-out, or to `path`.
  /// @throws what cut_checkpoint throws, IoError
  void write(const Plan& plan) { write(plan, options_.out); }
  void write(const Plan& plan, const std::string& path);

  std::string summary() const;                     ///< lines for the terminal
  std::optional<CheckpointReport> report() const;  ///< empty without --checkpoint

 private:
  explicit CheckpointJob(CheckpointOptions options) : options_(std::move(options)) {}

  CheckpointOptions options_;
  std::unique_ptr<TemporaryFolder> folder_;  ///< of the model with other weights
  std::unique_ptr<Checkpoint> checkpoint_;
  CheckpointMatch match_;
  CheckpointCut cut_;
  bool is_cut_ = false;  ///< `checkpoint_`
  std::vector<std::string> notes_;
};

/// Writes the model with new weights to `path` and opens it. @throws like the model's editor and
/// open_model()
std::unique_ptr<EditableFile> reopened(EditableFile& model,
                                       const std::vector<TensorUpdate>& weights,
                                       const std::string& path,
                                       const std::vector<std::string>& specs);

/// Prints a checkpoint, for `inspect`.
void inspect_checkpoint(const std::string& path, bool as_json);

}  // namespace parsimony::cli
