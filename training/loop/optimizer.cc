#include "parsimony/training/loop/optimizer.h"

#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

#include <utility>

#include "parsimony/training/loop/muon.h"

namespace parsimony::training {

std::unique_ptr<torch::optim::Optimizer> make_optimizer(std::vector<at::Tensor> parameters,
                                                        const TrainSettings& settings) {
  using namespace torch::optim;
  switch (settings.optimizer) {
    case OptimizerKind::kAdam:
      return std::make_unique<Adam>(std::move(parameters),
                                    AdamOptions(settings.lr).weight_decay(settings.weight_decay));
    case OptimizerKind::kAdamW:
      return std::make_unique<AdamW>(std::move(parameters),
                                     AdamWOptions(settings.lr).weight_decay(settings.weight_decay));
    case OptimizerKind::kMuon:
      return std::make_unique<Muon>(
          std::move(parameters),
          SGDOptions(settings.lr).momentum(settings.momentum).weight_decay(settings.weight_decay));
    case OptimizerKind::kSgd:
      break;
  }
  return std::make_unique<SGD>(
      std::move(parameters),
      SGDOptions(settings.lr).momentum(settings.momentum).weight_decay(settings.weight_decay));
}

void set_learning_rate(torch::optim::Optimizer& optimizer, double rate) {
  for (torch::optim::OptimizerParamGroup& group : optimizer.param_groups()) {
    group.options().set_lr(rate);
  }
}

}  // namespace parsimony::training
