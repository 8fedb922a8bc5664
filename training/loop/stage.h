// Epochs with one optimizer: from a cut, or the beginning, to the next cut.
#pragma once

#include <torch/optim/optimizer.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "parsimony/configs/recipe.h"
#include "parsimony/training/data/dataset.h"
#include "parsimony/training/loader/loader.h"
#include "parsimony/training/loop/precision.h"
#include "parsimony/training/loop/profile.h"
#include "parsimony/training/net/net.h"

namespace parsimony::training {

/// What a network learns from, and on what.
struct Place {
  const Dataset& data;
  c10::Device device;
  bool channels_last = false;
  Net* teacher = nullptr;  ///< for distillation; in evaluation mode
  Trace* trace = nullptr;
  /// Called in every step between the gradients and the optimizer; may change gradients.
  std::function<void()> after_backward = {};
};

/// One training epoch.
struct EpochTimes {
  Phases seconds;
  double loss = 0;  ///< mean over the samples
};

class Stage {
 public:
  /// `settings.epochs` are those of this stage: the learning rate's schedule spans them.
  Stage(Net& net, const Place& place, const TrainSettings& settings);

  /// The next epoch. `shuffle` numbers it over all stages.
  EpochTimes run(int64_t shuffle);
  /// One step of the optimizer, charged to its phases. The network must be in training mode.
  /// @returns the batch's loss
  at::Tensor step(const Batch& batch, Stopwatch& watch);

  torch::optim::Optimizer& optimizer() { return *optimizer_; }
  GradientScaler& scaler() { return scaler_; }
  /// Goes on behind so many epochs.
  void skip(int64_t epochs) { step_ = epochs * loader_.batches(); }

 private:
  at::Tensor loss(const Batch& batch);

  Net& net_;
  const Place& place_;
  TrainSettings settings_;
  Loader loader_;
  std::vector<at::Tensor> parameters_;
  std::unique_ptr<torch::optim::Optimizer> optimizer_;
  GradientScaler scaler_;
  int64_t step_ = 0;
};

/// Mean loss on the first `samples` training samples, in evaluation mode, without augmentation.
double loss_on(Net& net, const Place& place, const TrainSettings& settings, int64_t samples);

/// How many of the test samples the network answers rightly.
LedgerPoint::Score score(Net& net, const Place& place, const TrainSettings& settings);

/// The loader's options for training as the settings say.
LoaderOptions loader_options(const Place& place, const TrainSettings& settings);

}  // namespace parsimony::training
