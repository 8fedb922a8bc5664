// A torch::nn module as a TrainableModel.
#pragma once

#include <torch/nn/module.h>

#include <functional>
#include <memory>
#include <utility>

#include "parsimony/training/net/trainable_model.h"

namespace parsimony::training {

/// A module and its forward function.
struct Live {
  std::shared_ptr<torch::nn::Module> module;
  std::function<at::Tensor(const at::Tensor&)> forward;
};

template <typename Holder>
Live live(Holder holder) {
  return {holder.ptr(), [holder](const at::Tensor& x) mutable { return holder->forward(x); }};
}

/// `make` creates the module in full size with new weights. It is saved as TorchScript.
std::unique_ptr<TrainableModel> live_net(std::function<Live()> make);

}  // namespace parsimony::training
