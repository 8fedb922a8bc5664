// Recovers part of a small network's lost accuracy: the steps and their report, on any engine.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "parsimony/api/process_engine.h"
#include "parsimony/api/prune_request.h"
#include "parsimony/api/prune_services.h"
#include "parsimony/api/recovery/fit_sums.h"
#include "parsimony/api/recovery/part.h"
#include "parsimony/speedup/recovery.h"
#include "parsimony/speedup/small_network.h"

namespace parsimony {

/// The samples of a recovery, and steps that need more than an engine.
class RecoverySource {
 public:
  enum class Samples : uint8_t {
    kOwn,     ///< calibration samples of this process
    kAll,     ///< calibration samples of all processes
    kHeldOut  ///< samples that recovery does not see
  };

  virtual ~RecoverySource() = default;

  virtual Engine& engine() = 0;
  virtual int64_t samples() const = 0;       ///< calibration samples
  virtual int64_t test_samples() const = 0;  ///< samples for test errors and accuracies
  virtual bool has_held_out() const = 0;
  /// Returns batches of samples. @param small  the network that they are for; null: the dense one
  virtual ValueSource feed(Samples which, int64_t batch, const SmallNetwork* small) = 0;

  virtual int64_t batch() const = 0;      ///< samples per run
  virtual int64_t fit_batch() const = 0;  ///< samples per run of a fit, which needs several batches
  virtual Together together() const { return {}; }
  /// Whether this process, of several that do the same, is the one that measures and reports.
  virtual bool leads() const { return true; }

  /// Returns the accuracy on the test samples; empty without labels, or if output 0 has no classes.
  virtual std::optional<double> accuracy_of(const SmallNetwork& network) = 0;
  virtual std::optional<double> loss_of(const SmallNetwork& /*network*/) { return {}; }

  /// Runs a method without a closed form. @param fixed  tensors with single elements that stay zero
  /// @returns how many tensors changed
  virtual int train(RecoveryMethod /*method*/, SmallNetwork& /*small*/,
                    const std::vector<std::string>& /*fixed*/,
                    std::vector<std::string>& /*notes*/) {
    return 0;
  }
};

/// Returns the samples per run of networks whose samples have so many values.
int64_t recovery_batch(int64_t values);

/// Recovers the small network that the plan makes of `original`; changes values, never shapes.
/// Nothing is edited: the returned updates replace those of the plan. @param dense  the network to
/// match
/// @param say  called at every step; may be empty
/// @throws like source and engine
Recovered recover(RecoverySource& source, const Graph& dense, const Graph& original,
                  const Plan& plan, const RecoverySettings& settings, const Say& say = {});

/// Recovers in closed form from calibration data; other methods change nothing.
/// @throws ConfigError, IoError for the data; ModelError if they do not fit; UnsupportedError for
/// what cannot be run
Recovered recover_on(Engine& engine, const Graph& original, const Plan& plan,
                     const RecoverySettings& settings, const CalibrationData& data,
                     const Say& say = {});
/// The same with the samples of another process, and on its engine.
Recovered recover_on(ProcessEngine& process, const Graph& original, const Plan& plan,
                     const RecoverySettings& settings, const Say& say = {});

}  // namespace parsimony
