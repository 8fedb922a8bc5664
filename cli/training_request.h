// The jobs that `train`, `finetune` and `sweep` pass to the component.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "parsimony/api/ranks.h"
#include "parsimony/configs/recipe.h"
#include "parsimony/engines/timing.h"
#include "parsimony/report/ledger.h"

namespace parsimony::cli {

struct TrainingRequest {
  Recipe recipe;  ///< including command-line overrides
  std::string device = "auto";
  std::optional<int> threads;
  bool deterministic = false;
  bool verify = true;
  std::optional<int64_t> train_samples;  ///< at most; the first ones
  std::optional<int64_t> test_samples;
  std::optional<int64_t> image_size;  ///< of a folder's images
  RankPlace ranks;                    ///< those that train together
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
  /// Of the file of every point; may be empty.
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

}  // namespace parsimony::cli
