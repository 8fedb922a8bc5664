// Training on labelled data as a recipe says, and what a network is worth there.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <functional>
#include <string>

#include "parsimony/configs/recipe.h"
#include "parsimony/data/dataset.h"
#include "parsimony/report/ledger.h"
#include "parsimony/training/loader/loader.h"
#include "parsimony/training/loop/profile.h"
#include "parsimony/training/loop/trainer.h"
#include "parsimony/training/net/trainable_model.h"
#include "parsimony/training/ranks/group.h"

namespace parsimony::training {

/// Data, device and further context of training.
struct TrainContext {
  const Dataset& data;
  c10::Device device;
  bool channels_last = false;
  TrainedModule* teacher = nullptr;  ///< for distillation; in evaluation mode
  /// Trains with these: every rank has its share of each batch, and all take the same steps.
  const RankGroup* ranks = nullptr;
  Trace* trace = nullptr;
  /// Told once what the user should know; may be empty.
  std::function<void(const std::string& line)> say = {};
  /// Called in every step between backward and optimizer step; may change gradients.
  std::function<void()> after_backward = {};
};

/// Cross-entropy with the labels, mixed with what the context's teacher says. Epochs draw their
/// order of samples by their numbers. `settings.epochs` are those of this training: the learning
/// rate's schedule spans them. The context must outlive the result.
Training labelled_training(TrainedModule& module, const TrainContext& context,
                           const TrainSettings& settings);

/// Mean loss on the first `samples` training samples, in evaluation mode, without augmentation.
/// Every rank has all of them.
double loss_on(TrainedModule& module, const TrainContext& context, const TrainSettings& settings,
               int64_t samples);

/// The accuracy on the test set; of tokens also the perplexity.
LedgerPoint::Score score(TrainedModule& module, const TrainContext& context,
                         const TrainSettings& settings);

/// The loader's options for training with these settings: with several ranks, for this one's share.
LoaderOptions loader_options(const TrainContext& context, const TrainSettings& settings);

}  // namespace parsimony::training
