// The optimizers of recipes, and learning rate schedules.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/optim/optimizer.h>
#include <torch/optim/sgd.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "parsimony/configs/recipe.h"

namespace parsimony::training {

std::unique_ptr<torch::optim::Optimizer> make_optimizer(std::vector<at::Tensor> parameters,
                                                        const TrainSettings& settings);

/// @param scales  factors of the rate, per parameter group; empty: 1
void set_learning_rate(torch::optim::Optimizer& optimizer, double rate,
                       const std::vector<double>& scales = {});

/// An optimizer whose steps are relative to each tensor's size, as in Shazeer and Stern,
/// "Adafactor", 2018: one rate then suits weights of any size.
struct RelativeSteps {
  std::unique_ptr<torch::optim::Optimizer> optimizer;
  std::vector<double> sizes;  ///< the groups' scales: root mean squares of the current values
};
RelativeSteps relative_adam(const std::vector<at::Tensor>& parameters);

/// SGD with Nesterov momentum in which the step of a matrix is replaced by the nearest orthogonal
/// matrix. Convolution kernels are matrices [out, in · kernel]. Steps are relative: with learning
/// rate η a matrix changes by η times its norm, or times 0.001 √elements if that is larger. Weight
/// decay is decoupled. Vectors and depthwise kernels use plain SGD.
///
/// Jordan et al., "Muon: an optimizer for hidden layers in neural networks", 2024; relative steps:
/// Shazeer and Stern, "Adafactor", 2018.
class Muon : public torch::optim::SGD {
 public:
  using SGD::SGD;

  /// Uses only momentum, learning rate and weight decay of the options.
  at::Tensor step(LossClosure closure = nullptr) override;
};

/// Returns `matrix` [m, n] with its singular values replaced by values between 0.6 and 1.3, except
/// those below a hundredth of their root sum of squares; zeros are kept.
at::Tensor orthogonalised(const at::Tensor& matrix);

/// Returns the rate of optimizer step `step`, 0 <= step < steps, of a training of `settings.epochs`
/// epochs. Cosine and one cycle change it at every step, `step` at the epochs' ends.
/// @source cosine: Loshchilov and Hutter, SGDR, 2016, without restarts; one cycle: Smith and Topin,
/// Super-convergence, 2017: from lr/25 up to lr in 30 % of the steps, then down to lr/250,000
double learning_rate(const TrainSettings& settings, int64_t step, int64_t steps);

/// Takes the steps of a libtorch optimizer with PyTorch's fused kernels, on its own state. No step
/// reads values on the host, so that it can be recorded (StepGraph).
///
/// Supports SGD with momentum, Adam and AdamW.
class FusedStep {
 public:
  /// Returns null if libtorch has no such kernels for the optimizer, which must outlive the result.
  static std::unique_ptr<FusedStep> of(torch::optim::Optimizer& optimizer);
  virtual ~FusedStep() = default;

  /// Sets the learning rate of the following steps. Not to be recorded.
  virtual void set_rate(double rate) = 0;
  /// Takes a step unless `overflow`, a float on the parameters' device, is 1; undefined: always.
  virtual void step(const at::Tensor& overflow) = 0;
  /// Updates the step counts on the host, before the optimizer is saved.
  virtual void write_back_counts() = 0;
};

}  // namespace parsimony::training
