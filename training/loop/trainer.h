// The training loop: a module, on samples, for an objective, by a schedule, until a stopping
// condition.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <torch/optim/optimizer.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "parsimony/configs/recipe.h"
#include "parsimony/torch_io/sync_batch_norm.h"
#include "parsimony/training/loop/optimizer.h"
#include "parsimony/training/loop/precision.h"
#include "parsimony/training/loop/profile.h"
#include "parsimony/training/loop/step_graph.h"
#include "parsimony/training/net/trainable_model.h"
#include "parsimony/training/ranks/replicas.h"
#include "parsimony/training/statistics/batches.h"

namespace parsimony::training {

/// Samples that pass through the module at once.
struct StepPart : SampleBatch {
  StepPart(SampleBatch batch, int64_t number) : SampleBatch(std::move(batch)), index(number) {}

  int64_t index = 0;  ///< of the batch within the epoch
  double weight = 1;  ///< of its loss in the epoch's mean
};

/// The samples of one optimizer step.
struct StepBatch {
  StepBatch() = default;
  StepBatch(const Batch& batch);  // NOLINT(google-explicit-constructor): of one part

  std::vector<StepPart> parts;
  int64_t of_all = 0;  ///< samples of all ranks
};

/// Returns the next step's batch; empty at the end of the epoch.
using StepSource = std::function<std::optional<StepBatch>()>;

struct TrainSamples {
  std::function<StepSource(int64_t epoch)> begin;
  int64_t steps = 0;  ///< per epoch
  int64_t batch = 0;  ///< samples of a complete step
};

/// Returns the mean loss of a part: a scalar; undefined if there is nothing to compare.
/// @param outputs  of the module
using Objective =
    std::function<at::Tensor(const std::vector<at::Tensor>& outputs, const StepPart& part)>;

/// The position of a training before a step.
struct Position {
  int64_t step = 0;   ///< of the optimizer, over all epochs
  int64_t epoch = 0;  ///< as passed to epoch()
  int64_t batch = 0;  ///< within the epoch
};

/// Returns the learning rate of the step; empty if the training is over.
using Schedule = std::function<std::optional<double>(const Position& position)>;

/// One training epoch.
struct EpochTimes {
  Phases seconds;
  double loss = 0;         ///< mean over the parts of all ranks, by their weights
  int64_t samples = 0;     ///< of this rank
  int64_t step_bytes = 0;  ///< of gradients that this rank sends in a step
};

/// Called after every epoch. @returns whether it was the last
using Stop = std::function<bool(int64_t epoch, const EpochTimes& times)>;

struct Training {
  /// One module, or replicas that each run a part of a step concurrently: their parameters share
  /// memory, their gradients are summed in those of the first.
  std::vector<TrainedModule*> modules;
  TrainSamples samples;
  Objective objective;  ///< called from several threads if there are replicas
  Schedule schedule;
  std::unique_ptr<torch::optim::Optimizer> optimizer;  ///< of the first module's parameters
  std::vector<double> scales = {};                     ///< factors of the rate, per parameter group

  c10::Device device{c10::kCPU};
  Precision precision = Precision::kFloat32;
  /// Runs parts concurrently on the modules, by torch_io::side_by_side().
  bool one_core_each = false;
  /// Ranks to train with: each has its share of each batch, and all take the same steps.
  const RankGroup* ranks = nullptr;
  Trace* trace = nullptr;
  /// Called once per message to the user; may be empty.
  std::function<void(const std::string& line)> say = {};
  /// Called in every step between backward and optimizer step; may change gradients.
  std::function<void()> after_backward = {};
};

class Trainer {
 public:
  /// The modules must outlive it.
  explicit Trainer(Training training);

  /// Runs an epoch. @param number  passed to samples and schedule
  EpochTimes epoch(int64_t number);
  /// Runs epochs from 0 on, until `stop` returns true.
  void run(int64_t epochs, const Stop& stop);
  /// One optimizer step, with its times attributed to phases. The modules must be in training mode.
  /// @returns the parts' losses; none if there is nothing to learn or the training is over
  std::vector<at::Tensor> step(const StepBatch& batch, PhaseWatch& watch);
  /// Returns the losses of parts run concurrently, without a step; with gradients if these are
  /// recorded. Undefined for parts with nothing to compare.
  std::vector<at::Tensor> losses(const std::vector<StepPart>& parts);

  /// Returns the optimizer in its state between steps.
  torch::optim::Optimizer& optimizer();
  GradientScaler& scaler() { return scaler_; }
  /// Skips this many epochs.
  void skip(int64_t epochs) { step_ = epochs * training_.samples.steps; }

 private:
  /// Runs the forward and backward pass and the optimizer's step, all possibly asynchronous.
  std::vector<at::Tensor> compute(const StepBatch& batch, PhaseWatch& watch);
  std::vector<at::Tensor> differentiate(const StepBatch& batch, PhaseWatch& watch);
  std::vector<at::Tensor> differentiate_side_by_side(const StepBatch& batch);
  at::Tensor loss(size_t module, const StepPart& part);
  void sum_gradients();
  void average_gradients();
  bool records() const;
  void record(const StepBatch& batch);
  bool replays(const StepBatch& batch) const;
  torch_io::SyncBatchNorm::Sum sum_of_norms(const StepBatch& batch) const;

  Training training_;
  std::vector<std::vector<at::Tensor>> parameters_;  ///< of each module
  GradientScaler scaler_;
  std::unique_ptr<Replicas> replicas_;  ///< with several ranks
  std::unique_ptr<FusedStep> fused_;    ///< if libtorch has fused kernels for it
  int64_t epoch_ = 0;
  int64_t step_ = 0;
  int64_t launched_ = 0;  ///< steps of this object that were not replayed

  /// A recorded step with its input and output tensors.
  struct Recorded {
    StepBatch batch;
    std::vector<at::Tensor> losses;
    std::unique_ptr<StepGraph> graph;  ///< null if a step cannot be recorded
  };
  std::optional<Recorded> recorded_;  ///< set once tried
};

/// Returns sum / count over all ranks, null for one; 0 if count is 0.
double mean_of_ranks(const RankGroup* ranks, double sum, double count);

}  // namespace parsimony::training
