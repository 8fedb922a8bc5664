// Ways to give a small network back some of what it lost, and what came of them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "parsimony/speedup/plan.h"

namespace parsimony {

enum class RecoveryMethod : uint8_t { kBias, kBatchNorm, kLeastSquares, kFinetune };

/// "bias", "bn", "least-squares" or "finetune".
std::string_view name_of(RecoveryMethod method);
std::vector<std::string> recovery_names();
/// @throws ConfigError with near candidates
RecoveryMethod parse_recovery(std::string_view text, std::string_view place);

/// How close the small network is to the dense one.
struct RecoveryState {
  /// ‖small − dense‖ / ‖dense‖ of all outputs, over the calibration data.
  double error = 0;
  std::optional<double> accuracy;  ///< on the test part, 0..1; empty where outputs are no classes
};

/// One step and the network behind it.
struct RecoveryStep {
  RecoveryMethod method = RecoveryMethod::kBias;
  RecoveryState after;
  int layers = 0;  ///< that were changed
  double seconds = 0;
};

struct RecoveryReport {
  int64_t samples = 0;       ///< of calibration
  int64_t test_samples = 0;  ///< that accuracies are of
  std::optional<double> dense_accuracy;
  RecoveryState before;  ///< pruned, nothing recovered
  std::vector<RecoveryStep> steps;
  std::vector<std::string> notes;  ///< steps that had nothing to do
};

/// What recovery made: the plan's folds with the new values.
struct Recovered {
  std::vector<PlanFold> folds;
  RecoveryReport report;
};

}  // namespace parsimony
