// A module in evaluation mode for a while.
#pragma once

#include <torch/nn/module.h>

#include <utility>
#include <vector>

namespace parsimony::torch_io {

/// Puts a module into evaluation mode and, at the end, each of its parts into the mode it had.
class Evaluating {
 public:
  explicit Evaluating(torch::nn::Module& module) {
    module.apply(
        [this](torch::nn::Module& part) { modes_.emplace_back(&part, part.is_training()); });
    module.eval();
  }
  ~Evaluating() {
    // From the root downwards, for `train` descends.
    for (const auto& [part, training] : modes_) part->train(training);
  }
  Evaluating(const Evaluating&) = delete;
  Evaluating& operator=(const Evaluating&) = delete;

 private:
  std::vector<std::pair<torch::nn::Module*, bool>> modes_;
};

}  // namespace parsimony::torch_io
