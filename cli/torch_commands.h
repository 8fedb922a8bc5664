// The interface to libtorch for the command, besides pruning: training, exports, doctor.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "parsimony/api/ranks.h"
#include "parsimony/api/torch_component.h"
#include "parsimony/configs/recipe.h"
#include "parsimony/engines/machine/report.h"
#include "parsimony/engines/timing.h"
#include "parsimony/report/ledger.h"
#include "parsimony/speedup/proof.h"

namespace parsimony::cli {

// Requests that `train`, `finetune` and `sweep` pass to the component.

struct TrainingRequest {
  Recipe recipe;  ///< including command-line overrides
  std::string device = "auto";
  std::optional<int> threads;
  bool deterministic = false;
  bool verify = true;
  std::optional<int64_t> train_samples;  ///< at most; the first ones
  std::optional<int64_t> test_samples;
  std::optional<int64_t> image_size;  ///< of a folder's images
  RankPlace ranks;                    ///< ranks that train together
  std::string command;                ///< as it was typed
  std::function<void(const std::string& line)> say;
};

struct TrainRequest : TrainingRequest {
  std::string out;          ///< path of the trained network; may be empty
  std::string plan;         ///< path of the last cut's plan; may be empty
  std::string teacher;      ///< a model to distil from; may be empty
  std::string checkpoint;   ///< written after every epoch and resumed from; may be empty
  std::string profile;      ///< a trace for Chrome; may be empty
  std::string tensorboard;  ///< folder for a new event file; may be empty
};

struct SweepRequest : TrainingRequest {
  std::string folder;
  Shard shard;
  std::function<void()> prepared = {};  ///< called once model and data are loaded
  /// Measures the model file of every point; may be empty.
  std::function<std::vector<LedgerPoint::Metric>(const std::string& model)> measure = {};
};

struct TrainBenchRequest : TrainingRequest {
  machine::InterleavedOptions rounds;
};

/// Training steps in one memory format and precision, measured interleaved with the others.
struct TrainBenchRow {
  std::string memory_format;
  std::string precision;
  std::string refused;        ///< why it did not run; empty: it did
  machine::Summary cached;    ///< the same batch every time: the model alone
  machine::Summary pipeline;  ///< with batches from the loader
};

/// Implemented in the same component as TorchComponent.
class TorchCommands {
 public:
  /// Measures the machine, in about a second.
  virtual machine::MachineReport doctor() = 0;

  /// Measures the connections of the processes at `place`, which must all call it; see
  /// training/ranks/examine.h.
  virtual std::vector<machine::Finding> doctor_of_ranks(const RankPlace& place) = 0;

  /// Trains a network by the recipe. @returns the result
  /// @throws ConfigError, IoError, ModelError, UnsupportedError, VerificationError
  virtual LedgerPoint train(const TrainRequest& request) = 0;

  /// Trains the points missing in the folder's ledger. @returns how many points other processes are
  /// working on
  virtual int sweep(const SweepRequest& request) = 0;

  /// Times training steps in every memory format and precision that the device supports.
  virtual std::vector<TrainBenchRow> bench_training(const TrainBenchRequest& request) = 0;

 protected:
  ~TorchCommands() = default;  // lives as long as the process
};

/// Returns the commands of the component. @throws like torch_component()
inline TorchCommands& torch_commands() { return *torch_component_entry().commands; }

}  // namespace parsimony::cli
