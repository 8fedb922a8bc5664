// What `train`, `finetune` and `sweep` have the component do.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "parsimony/configs/recipe.h"
#include "parsimony/engines/timing.h"
#include "parsimony/engines/turns.h"
#include "parsimony/report/ledger_point.h"

namespace parsimony::cli {

struct TrainingRequest {
  Recipe recipe;  ///< with what the command line says instead
  std::string device = "auto";
  std::optional<int> threads;
  bool deterministic = false;
  bool verify = true;
  std::optional<int64_t> train_samples;  ///< no more than the first so many
  std::optional<int64_t> test_samples;
  std::optional<int64_t> image_size;  ///< of a folder's images
  std::string command;                ///< as it was typed
  std::function<void(const std::string& line)> say;
};

struct TrainRequest : TrainingRequest {
  std::string out;         ///< where the trained network goes; may be empty
  std::string plan;        ///< where the last cut's plan goes; may be empty
  std::string teacher;     ///< a model to distil from; may be empty
  std::string checkpoint;  ///< written after every epoch, continued if there; may be empty
  std::string profile;     ///< a trace for Chrome; may be empty
};

struct SweepRequest : TrainingRequest {
  std::string folder;
  Shard shard;
  std::function<void()> prepared = {};  ///< called once model and data are at hand
};

struct TrainBenchRequest : TrainingRequest {
  machine::TurnOptions turns;
};

/// Training steps in one memory format and precision, measured in turn with the others.
struct TrainBenchRow {
  std::string memory_format;
  std::string precision;
  std::string refused;        ///< why it did not run; empty: it did
  machine::Summary cached;    ///< one batch over and over: what the model costs
  machine::Summary pipeline;  ///< batch after batch from the loader
};

}  // namespace parsimony::cli
