// What the command has libtorch do beside pruning: training, exports, the doctor.
#pragma once

#include <vector>

#include "parsimony/api/torch_component.h"
#include "parsimony/cli/export_order.h"
#include "parsimony/cli/training_request.h"
#include "parsimony/engines/machine/report.h"

namespace parsimony::cli {

/// In the same component as TorchComponent, under the same terms.
class TorchCommands {
 public:
  /// Measures the machine, in about a second.
  virtual machine::MachineReport doctor() = 0;

  /// Trains a network as the recipe says. @returns what came of it
  /// @throws ConfigError, IoError, ModelError, UnsupportedError, VerificationError
  virtual LedgerPoint train(const TrainRequest& request) = 0;

  /// Trains the points that the folder's ledger lacks. @returns how many others are at work on
  virtual int sweep(const SweepRequest& request) = 0;

  /// Times training steps in every memory format and precision that the device has.
  virtual std::vector<TrainBenchRow> bench_training(const TrainBenchRequest& request) = 0;

  /// Writes TorchScript as ONNX and proves it; see torch_io/export.
  /// @throws IoError, ModelError, ConfigError, UnsupportedError, VerificationError
  virtual ExportOutcome export_onnx(const ExportOrder& order) = 0;

 protected:
  ~TorchCommands() = default;  // lives as long as the process
};

/// The component's. @throws as torch_component() does
inline TorchCommands& torch_commands() { return *torch_component_entry().commands; }

}  // namespace parsimony::cli
