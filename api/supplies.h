// Supplies the functions of a pruning that run data and networks.
#pragma once

#include <optional>
#include <string>

#include "parsimony/api/data_engine.h"
#include "parsimony/api/latency/profiler.h"
#include "parsimony/api/network_error.h"
#include "parsimony/api/prune.h"

namespace parsimony {

/// Data that the configuration names, where none are given. What is said of pictures stays.
void take_calibration(CalibrationData& given, const ConfigList& config);

/// Fills in the functions of options from their settings: data, recovery steps, an engine for
/// latency budgets. An engine is loaded when one of them is called: see DataEngine.
///
///     PruneOptions options;
///     options.calibration.data = "folder:/data/val";
///     Supplies supplies(options, config, model->graph());
///     prune_model(*model, config, options, &supplies.engine());
///     supplies.save();
class Supplies {
 public:
  /// Must outlive the use of `options`; `original` must outlive this. Data and recovery steps
  /// default to the config's.
  /// @throws ConfigError if recovery or depth pruning has no data; UnsupportedError without the
  /// engine of a latency budget, or if outputs have to be compared and cannot be
  Supplies(PruneOptions& options, const ConfigList& config, const Graph& original);
  Supplies(const Supplies&) = delete;
  Supplies& operator=(const Supplies&) = delete;

  /// For the proof.
  Engine& engine() { return *engine_; }

  /// The profiler of a latency budget, else null.
  const LatencyProfiler* profiler() const { return profiler_ ? &*profiler_ : nullptr; }
  /// Saves the profiler's tables.
  void save();

  /// Why importance could not be measured on outputs, if a latency budget does without it.
  const std::string& without_outputs() const { return without_outputs_; }

 private:
  void compare_outputs(PruneOptions& options, const Graph& original, bool required);
  void recover(PruneOptions& options, const ConfigList& config);
  void remove_blocks(PruneOptions& options, const Graph& original);

  DataEngine data_;
  std::unique_ptr<Engine> engine_;
  std::optional<LatencyProfiler> profiler_;
  std::optional<NetworkComparison> comparison_;
  std::string without_outputs_;
};

}  // namespace parsimony
