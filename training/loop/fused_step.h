// An optimizer's step in few kernels over all parameters.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/optim/optimizer.h>

#include <memory>
#include <vector>

namespace parsimony::training {

/// Takes the steps of a libtorch optimizer with PyTorch's fused kernels, on its own state. Nothing
/// that a step needs is read on the host, so that it can be recorded (StepGraph).
///
/// Of libtorch's optimizers SGD with its momentum, Adam and AdamW.
class FusedStep {
 public:
  /// Null where libtorch has no such kernels for the optimizer. It must outlive the result.
  static std::unique_ptr<FusedStep> of(torch::optim::Optimizer& optimizer);
  virtual ~FusedStep() = default;

  /// The learning rate of the steps that follow. Not to be recorded.
  virtual void set_rate(double rate) = 0;
  /// Takes a step unless `overflow`, a float on the parameters' device, is 1; undefined: always.
  virtual void step(const at::Tensor& overflow) = 0;
  /// Brings what the optimizer counts on the host up to date, for whoever saves it.
  virtual void settle() = 0;
};

}  // namespace parsimony::training
