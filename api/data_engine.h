// Runs data through networks: calibration, comparisons, recovery.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "parsimony/api/engines.h"
#include "parsimony/api/network_error.h"
#include "parsimony/api/process_engine.h"
#include "parsimony/api/prune.h"
#include "parsimony/api/torch_component.h"
#include "parsimony/graph/interface.h"
#include "parsimony/pruners/statistics.h"

namespace parsimony {

/// Runs data through networks on libtorch, or on ONNX Runtime if that is requested or libtorch is
/// missing. What ONNX Runtime does not support is always run on libtorch: gradients, states,
/// training, and networks that are not ONNX models. Data of another process run there, see
/// ProcessEngine.
class DataEngine {
 public:
  /// @throws as name_of() and engine_of()
  DataEngine(const EngineChoice& choice, std::optional<int> threads);
  /// @param data  of all calls. @throws as ProcessEngine, too
  DataEngine(const EngineChoice& choice, std::optional<int> threads, const CalibrationData& data);

  /// Returns the engine for networks in memory.
  Engine& engine() { return other_ ? *other_ : torch_; }
  const LazyTorch& torch() const { return torch_; }

  // Counterparts of TorchComponent's functions, which also throw UnsupportedError if they need
  // libtorch and it is missing.
  Statistics measure(const Graph& graph, const Facts& facts, const Coupling& coupling,
                     const Needs& needs, const CalibrationData& data) const;
  std::vector<double> block_influences(const Graph& graph, const std::vector<ResidualBlock>& blocks,
                                       const CalibrationData& data) const;
  ErrorData samples(const Graph& graph, const CalibrationData& data, bool unseen) const;
  /// @throws UnsupportedError for steps that the process that has the data cannot run
  void check_recovery(const RecoverySettings& settings) const;
  Recovered recover(const Graph& original, const Plan& plan, const RecoverySettings& settings,
                    const CalibrationData& data, const Say& say = {}) const;

 private:
  /// Null: the data are in files.
  ProcessEngine* process() const { return dynamic_cast<ProcessEngine*>(other_.get()); }
  template <typename OnOnnxRuntime, typename OnTorch>
  auto either(const std::string& why, const OnOnnxRuntime& on_onnx_runtime,
              const OnTorch& on_torch) const;

  LazyTorch torch_;
  /// ONNX Runtime, or the process that has the data; null: libtorch does all.
  std::unique_ptr<Engine> other_;
};

/// The random inputs used without data; `specs` are those of --input.
struct RandomInputSpec {
  std::vector<InputSpec> specs;
  int64_t samples = 16;
  uint64_t seed = 1;
};

/// Runs `original` on the calibration data, or on random inputs if there are none. `engine` must
/// outlive the comparison.
/// @param unseen  use data that calibration does not see, if there are any: see TorchComponent
/// @throws ConfigError, IoError, ModelError for the data; UnsupportedError if the engine cannot run
/// it
NetworkComparison compare_with(const Graph& original, const CalibrationData& data,
                               const RandomInputSpec& random, DataEngine& engine,
                               bool unseen = false);

}  // namespace parsimony
