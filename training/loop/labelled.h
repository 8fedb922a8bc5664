// Training on labelled data according to a recipe, and evaluation on it.
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
  /// Ranks to train with: each has its share of each batch, and all take the same steps.
  const RankGroup* ranks = nullptr;
  Trace* trace = nullptr;
  /// Called once per message to the user; may be empty.
  std::function<void(const std::string& line)> say = {};
  /// Called in every step between backward and optimizer step; may change gradients.
  std::function<void()> after_backward = {};
};

/// Returns training with cross-entropy with the labels, mixed with distillation from the context's
/// teacher. The order of samples depends on the epoch's number. The learning rate's schedule spans
/// `settings.epochs`, the epochs of this training. The context must outlive the result.
Training labelled_training(TrainedModule& module, const TrainContext& context,
                           const TrainSettings& settings);

/// Returns the mean loss on the first `samples` training samples, in evaluation mode, without
/// augmentation. Every rank processes all of them.
double loss_on(TrainedModule& module, const TrainContext& context, const TrainSettings& settings,
               int64_t samples);

/// Returns the accuracy on the test set; for tokens also the perplexity.
LedgerPoint::Score score(TrainedModule& module, const TrainContext& context,
                         const TrainSettings& settings);

/// Returns the loader's options for these settings; with several ranks, for this one's share.
LoaderOptions loader_options(const TrainContext& context, const TrainSettings& settings);

}  // namespace parsimony::training
