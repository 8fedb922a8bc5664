// The services of a pruning on engines: libtorch's component, loaded on demand, and ONNX Runtime.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "parsimony/api/data_engine.h"
#include "parsimony/api/latency/profiler.h"
#include "parsimony/api/network_error.h"
#include "parsimony/api/prune.h"

namespace parsimony {

/// Provides the services that a request needs: its data, its recovery steps, and an engine for the
/// proof and for latency budgets. Engines are loaded on first use, see DataEngine.
///
///     PruneRequest request = read_config("cfg.json");
///     request.calibration.data = "folder:/data/val";
///     EngineServices services(request, model->graph());
///     PruneResult result = prune_model(*model, request, services);
///     services.save();
class EngineServices : public PruneServices {
 public:
  /// `original` must outlive this. Data and recovery steps default to the config's.
  /// @param given  services to keep unchanged
  /// @throws ConfigError if recovery, depth pruning or a comparison of criteria has no data, or as
  /// calibration_of; UnsupportedError if the engine of a latency budget is missing, or if a
  /// required comparison of outputs is not possible
  EngineServices(const PruneRequest& request, const Graph& original, PruneServices given = {});
  EngineServices(const EngineServices&) = delete;
  EngineServices& operator=(const EngineServices&) = delete;

  /// Returns the profiler of a latency budget; null if there is none.
  const LatencyProfiler* profiler() const { return profiler_ ? &*profiler_ : nullptr; }
  /// Saves the profiler's tables.
  void save();

  /// Returns why importance could not be measured on outputs, if a latency budget proceeds without
  /// it.
  const std::string& without_outputs() const { return without_outputs_; }

 private:
  void run_data(const CalibrationData& data);
  void time_networks(const PruneRequest& request);
  void compare_outputs(const Graph& original, const CalibrationData& data, bool required);
  /// Compares criteria after the steps in closed form, by samples that these have not seen.
  void repair_with(RecoverySettings settings, CalibrationData data);
  void recover_with(const RecoverySettings& settings, const CalibrationData& data);
  void rank_blocks(const Graph& original, const RecoverySettings& settings,
                   const CalibrationData& data);

  DataEngine data_;
  std::unique_ptr<Engine> engine_;
  std::optional<LatencyProfiler> profiler_;
  std::optional<NetworkComparison> comparison_;
  std::string without_outputs_;
};

}  // namespace parsimony
