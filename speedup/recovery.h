// Methods that recover part of a small network's lost accuracy, and their results.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "parsimony/speedup/plan.h"

namespace parsimony {

enum class RecoveryMethod : uint8_t {
  kBias,
  kBatchNorm,
  kLeastSquares,
  kOutputs,
  kBlocks,
  kFinetune
};

/// Traits in which the recovery methods differ, beside what they do.
struct RecoveryKind {
  RecoveryMethod method = RecoveryMethod::kBias;
  std::string_view name;
  bool closed_form = false;     ///< from sums over activations, on any engine; else by gradients
  bool fits_layers = false;     ///< and says which layers it leaves as they were
  bool matches_outputs = true;  ///< of the dense network
  std::string_view reason_for_nothing = "there was nothing to change";
};

const RecoveryKind& recovery_kind(RecoveryMethod method);
inline bool is_closed_form(RecoveryMethod method) { return recovery_kind(method).closed_form; }

/// "bias", "bn", "least-squares", "outputs", "outputs:blocks" or "finetune".
std::string_view name_of(RecoveryMethod method);
std::vector<std::string> recovery_names();
/// @throws ConfigError with close matches
RecoveryMethod parse_recovery(std::string_view text, std::string_view place);

/// The error of the small network relative to the dense one.
struct RecoveryState {
  /// ‖small − dense‖ / ‖dense‖ of all outputs but states, over the calibration data.
  double error = 0;
  /// The relative error over samples that recovery does not see; empty if there are none.
  std::optional<double> test_error = {};
  std::optional<double> accuracy =
      {};  ///< on the test set, 0..1; empty if the outputs are not classes
  /// The mean of --loss over the same samples as test_error, or over the calibration data; empty
  /// without a loss.
  std::optional<double> loss = {};
};

/// The fit of one layer. Errors are ‖small − dense‖ / ‖dense‖ of what the layer should give, on
/// samples that were held out of the fit; empty if none were.
struct LayerRecovery {
  std::string layer;
  std::optional<double> before = {};
  std::optional<double> after = {};  ///< of what was fitted to the other samples
  double ridge = 0;
  bool kept = false;  ///< the layer has its weights still, since `after` is worse
};

/// One step and the network after it.
struct RecoveryStep {
  RecoveryMethod method = RecoveryMethod::kBias;
  RecoveryState after;
  int layers = 0;  ///< that were changed
  double seconds = 0;
  std::vector<LayerRecovery> fits = {};  ///< of bias and least-squares, in topological order
};

struct RecoveryReport {
  int64_t samples = 0;       ///< of calibration
  int64_t test_samples = 0;  ///< of the test errors and accuracies
  std::optional<double> dense_accuracy;
  std::optional<double> dense_loss;
  RecoveryState before;  ///< pruned, before recovery
  std::vector<RecoveryStep> steps;
  std::vector<std::string> notes;  ///< steps that had nothing to do
};

/// The result of recovery: the plan's updates with the new values.
struct Recovered {
  std::vector<TensorUpdate> updates;
  RecoveryReport report;
};

}  // namespace parsimony
