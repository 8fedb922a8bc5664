// Recovers part of a small network's lost accuracy: the steps and their report, for any engine.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "parsimony/api/prune_request.h"
#include "parsimony/api/prune_services.h"
#include "parsimony/api/recovery/refit.h"
#include "parsimony/speedup/recovery.h"
#include "parsimony/speedup/small_network.h"

namespace parsimony {

/// The data and the dense network, on an engine.
class RecoveryEngine {
 public:
  virtual ~RecoveryEngine() = default;

  virtual int64_t samples() const = 0;
  virtual int64_t test_samples() const = 0;  ///< of test errors and accuracies
  /// Of several processes that do the same one measures and reports.
  virtual bool leads() const { return true; }

  virtual std::optional<double> dense_accuracy() { return {}; }
  virtual std::optional<double> dense_loss() { return {}; }
  virtual RecoveryState state_of(const SmallNetwork& small) = 0;

  /// @param fixed  tensors with single elements that stay zero
  /// @param log    receives what became of the layers
  /// @returns the number of layers, or tensors, that changed
  virtual int carry_out(RecoveryMethod method, SmallNetwork& small,
                        const std::vector<std::string>& fixed, RefitLog& log,
                        std::vector<std::string>& notes) = 0;
};

/// Changes values of what the plan makes of `original`, never its shapes. Nothing is edited; the
/// returned updates replace those of the plan. @param say  called at every step; may be empty
/// @throws as the engine
Recovered recover(RecoveryEngine& engine, const Graph& original, const Plan& plan,
                  const RecoverySettings& settings, const Say& say = {});

}  // namespace parsimony
