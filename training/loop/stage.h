// A stage: epochs with one optimizer, from the beginning or a cut to the next cut.
#pragma once

#include <torch/optim/optimizer.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "parsimony/configs/recipe.h"
#include "parsimony/data/dataset.h"
#include "parsimony/torch_io/sync_batch_norm.h"
#include "parsimony/training/loader/loader.h"
#include "parsimony/training/loop/fused_step.h"
#include "parsimony/training/loop/precision.h"
#include "parsimony/training/loop/profile.h"
#include "parsimony/training/loop/step_graph.h"
#include "parsimony/training/net/net.h"
#include "parsimony/training/ranks/replicas.h"

namespace parsimony::training {

/// Data, device and further context of training.
struct TrainContext {
  const Dataset& data;
  c10::Device device;
  bool channels_last = false;
  Net* teacher = nullptr;  ///< for distillation; in evaluation mode
  /// Trains with these: every rank has its share of each batch, and all take the same steps.
  const RankGroup* ranks = nullptr;
  Trace* trace = nullptr;
  /// Told once what the user should know; may be empty.
  std::function<void(const std::string& line)> say = {};
  /// Called in every step between backward and optimizer step; may change gradients.
  std::function<void()> after_backward = {};
};

/// One training epoch.
struct EpochTimes {
  Phases seconds;
  double loss = 0;         ///< mean over the samples of all ranks
  int64_t samples = 0;     ///< of this rank
  int64_t step_bytes = 0;  ///< of gradients that this rank sends in a step
};

class Stage {
 public:
  /// `settings.epochs` are those of this stage: the learning rate's schedule spans them.
  Stage(Net& net, const TrainContext& context, const TrainSettings& settings);

  /// Runs the next epoch. `shuffle` is its number over all stages.
  EpochTimes run(int64_t shuffle);
  /// One optimizer step, with its times attributed to phases. The network must be in training mode.
  /// @returns the batch's loss
  at::Tensor step(const Batch& batch, PhaseWatch& watch);

  /// As it is between steps.
  torch::optim::Optimizer& optimizer() {
    if (fused_) fused_->settle();
    return *optimizer_;
  }
  GradientScaler& scaler() { return scaler_; }
  /// Skips this many epochs.
  void skip(int64_t epochs) { step_ = epochs * loader_.batches(); }

 private:
  /// Forward and backward pass and the optimizer's step, all of which the device may do later.
  /// @returns the batch's loss
  at::Tensor compute(const Batch& batch, PhaseWatch& watch);
  bool records() const;
  void record(const Batch& batch);
  at::Tensor loss(const Batch& batch);
  torch_io::SyncBatchNorm::Sum sum_of_norms(const Batch& batch) const;
  double mean_of_ranks(const at::Tensor& sum, int64_t samples) const;

  Net& net_;
  const TrainContext& context_;
  TrainSettings settings_;
  Loader loader_;
  std::vector<at::Tensor> parameters_;
  std::unique_ptr<torch::optim::Optimizer> optimizer_;
  GradientScaler scaler_;
  std::unique_ptr<Replicas> replicas_;  ///< with several ranks
  std::unique_ptr<FusedStep> fused_;    ///< where libtorch has kernels for it
  int64_t step_ = 0;
  int64_t launched_ = 0;  ///< steps of this object that were not replayed

  /// A recorded step and the tensors that it reads and writes.
  struct Recorded {
    Batch batch;
    at::Tensor loss;
    std::unique_ptr<StepGraph> graph;  ///< null where a step cannot be recorded
  };
  std::optional<Recorded> recorded_;  ///< once it was tried
};

/// Mean loss on the first `samples` training samples, in evaluation mode, without augmentation.
/// Every rank has all of them.
double loss_on(Net& net, const TrainContext& context, const TrainSettings& settings,
               int64_t samples);

/// The accuracy on the test set; of tokens also the perplexity.
LedgerPoint::Score score(Net& net, const TrainContext& context, const TrainSettings& settings);

/// The loader's options for training with these settings: with several ranks, for this one's share.
LoaderOptions loader_options(const TrainContext& context, const TrainSettings& settings);

}  // namespace parsimony::training
