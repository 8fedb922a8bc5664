// The optimizers that a recipe can name, and how the learning rate goes on.
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

void set_learning_rate(torch::optim::Optimizer& optimizer, double rate);

/// SGD with Nesterov's momentum, in which the nearest orthogonal matrix takes the place of a
/// matrix's step. The kernels of a convolution are a matrix [out, in · kernel]. Its steps are
/// relative: with rate η it changes by η times its norm, or of 0.001 √elements where that is more.
/// Weight decay is decoupled. Vectors and depthwise kernels take SGD's steps.
///
/// Jordan et al., "Muon: an optimizer for hidden layers in neural networks", 2024; relative steps:
/// Shazeer and Stern, "Adafactor", 2018.
class Muon : public torch::optim::SGD {
 public:
  using SGD::SGD;

  /// Only momentum, rate and weight decay of the options count.
  at::Tensor step(LossClosure closure = nullptr) override;
};

/// `matrix` [m, n] with the same singular vectors and values between 0.6 and 1.3 in place of its
/// own, apart from those below a hundredth of their root sum of squares; zeros stay.
at::Tensor orthogonalised(const at::Tensor& matrix);

/// The rate of optimizer step `step`, 0 <= step < steps, of a training of `settings.epochs` epochs.
/// Cosine and one cycle change it at every step, `step` at the epochs' ends.
/// @source cosine: Loshchilov and Hutter, SGDR, 2016, without restarts; one cycle: Smith and Topin,
/// Super-convergence, 2017: from lr/25 up to lr in 30 % of the steps, then down to lr/250,000
double learning_rate(const TrainSettings& settings, int64_t step, int64_t steps);

}  // namespace parsimony::training
