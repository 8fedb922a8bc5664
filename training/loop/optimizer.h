// The optimizers that a recipe can name.
#pragma once

#include <torch/optim/optimizer.h>

#include <memory>
#include <vector>

#include "parsimony/configs/recipe.h"

namespace parsimony::training {

std::unique_ptr<torch::optim::Optimizer> make_optimizer(std::vector<at::Tensor> parameters,
                                                        const TrainSettings& settings);

void set_learning_rate(torch::optim::Optimizer& optimizer, double rate);

}  // namespace parsimony::training
