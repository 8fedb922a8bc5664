// What the command has libtorch do. It stands in a component of its own, a shared library that is
// loaded when it is first needed: libtorch brings hundreds of libraries.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "parsimony/api/model.h"
#include "parsimony/api/network_error.h"
#include "parsimony/cli/calibration_order.h"
#include "parsimony/cli/export_order.h"
#include "parsimony/cli/recovery_order.h"
#include "parsimony/cli/training_request.h"
#include "parsimony/engines/machine/report.h"
#include "parsimony/graph/blocks.h"
#include "parsimony/pruners/statistics.h"
#include "parsimony/speedup/observation.h"

namespace parsimony::cli {

/// The component's side is cli/torch/component.cc. Signatures know the standard library and rooms
/// below torch_io only. Errors of ours pass as what they are.
///
/// To add a method: declare it here, define it there, and count kTorchInterface up; likewise when
/// what the signatures name gets another member.
class TorchComponent {
 public:
  /// Of libtorch: "1.13.1".
  virtual std::string version() = 0;

  /// Measures the machine, in about a second.
  virtual machine::MachineReport doctor() = 0;

  /// Sets the threads of what runs after it; without `wanted` by measurement, once per process.
  /// @returns the number. @throws ConfigError if `wanted` is not positive
  virtual int choose_threads(std::optional<int> wanted) = 0;

  /// Opens TorchScript; `specs` are those of --input.
  /// @throws IoError, ModelError, UnsupportedError, ConfigError
  virtual std::unique_ptr<Model> open_script(const std::string& path,
                                             const std::vector<std::string>& specs) = 0;

  /// Runs `original` with the plan's channels absent. Weights for which `read_anew` holds are not
  /// copied: their bytes must stay. @throws UnsupportedError
  virtual std::unique_ptr<Prover> prover(const Graph& original, const Plan& plan,
                                         const Probe& probe, const ProofOptions& options,
                                         std::function<bool(const Weight&)> read_anew) = 0;

  /// Runs `graph`, which the runner keeps. `read_anew`: as above for single runs; what `bind`
  /// returns holds all weights. @throws UnsupportedError
  virtual std::unique_ptr<Runner> runner(Graph graph,
                                         std::function<bool(const Weight&)> read_anew) = 0;
  std::unique_ptr<Runner> runner(Graph graph) { return runner(std::move(graph), {}); }

  /// Trains a network as the recipe says. @returns what came of it
  /// @throws ConfigError, IoError, ModelError, UnsupportedError, VerificationError
  virtual LedgerPoint train(const TrainRequest& order) = 0;

  /// Trains the points that the folder's ledger lacks. @returns how many others are at work on
  virtual int sweep(const SweepRequest& order) = 0;

  /// Times training steps in every memory format and precision that the device has.
  virtual std::vector<TrainBenchRow> bench_training(const TrainBenchRequest& order) = 0;

  /// See Observe. @throws UnsupportedError
  virtual std::vector<std::vector<IndexContent>> observe(
      const Graph& graph, const Probe& probe, const std::vector<ElementMask>& masks,
      const std::vector<Dimension>& dimensions) = 0;

  /// Would the small network that `plan` makes differ from the masked original?
  virtual bool differs(const Graph& original, const Plan& plan, const Probe& probe,
                       const ProofOptions& options) = 0;

  /// Runs calibration data through the network that `graph` describes; see training/statistics.
  /// @throws ConfigError, IoError for the data; ModelError if they do not fit; UnsupportedError for
  /// networks with several inputs and what cannot be run
  virtual Statistics measure(const Graph& graph, const Facts& facts, const Coupling& coupling,
                             const Needs& needs, const CalibrationOrder& order) = 0;

  /// What each block does to its input, see training/statistics; throws as `measure` does.
  virtual std::vector<double> block_influences(const Graph& graph,
                                               const std::vector<ResidualBlock>& blocks,
                                               const CalibrationOrder& order) = 0;

  /// Calibration data as the network's input takes them, in batches of the size it declares or of
  /// 64, with their labels. @throws ConfigError, IoError, ModelError for the data
  virtual ErrorData samples(const Graph& graph, const CalibrationOrder& order) = 0;

  /// Changes values of the small network that `plan` makes of `original`; see training/recovery.
  /// @throws ConfigError, IoError for the data; ModelError if they do not fit; UnsupportedError for
  /// networks with several inputs and what cannot be run
  virtual Recovered recover(const Graph& original, const Plan& plan,
                            const RecoveryOrder& order) = 0;

  /// Writes TorchScript as ONNX and proves it; see torch_io/export.
  /// @throws IoError, ModelError, ConfigError, UnsupportedError, VerificationError
  virtual ExportOutcome export_onnx(const ExportOrder& order) = 0;

 protected:
  ~TorchComponent() = default;  // lives as long as the process
};

/// Of the classes above. The command refuses a component that has another.
constexpr int32_t kTorchInterface = 11;

/// What the component's only symbol, `parsimony_torch_component`, points to. The members before
/// `component` keep their places in all versions.
struct TorchComponentEntry {
  int32_t interface = kTorchInterface;
  const char* version = "";  ///< of the parsimony it belongs to
  TorchComponent* component = nullptr;
};

constexpr const char* kTorchComponentSymbol = "parsimony_torch_component";

/// The component, loaded by the first call. Before that, an OpenBLAS that would choose kernels
/// below what the processor can do is told better, and OpenMP's threads are told to sleep while
/// they wait; both only where the environment says nothing about it.
/// @throws UnsupportedError if it is not there or of another version
TorchComponent& torch_component();

/// Loads it, which takes some 0.6 s, beside what the caller does before its first call of
/// torch_component(); that call also throws what fails here.
std::jthread loading_torch_component();

/// Is there a file to load?
bool has_torch_component();

}  // namespace parsimony::cli
