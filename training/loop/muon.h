// Muon: momentum whose steps turn all directions of a matrix alike.
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/optim/sgd.h>

namespace parsimony::training {

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

}  // namespace parsimony::training
