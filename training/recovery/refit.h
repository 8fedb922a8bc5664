// Refits layers of a small network to what the dense one answers.
#pragma once

#include "parsimony/speedup/small_network.h"
#include "parsimony/training/statistics/batches.h"

namespace parsimony::training {

struct RefitOptions {
  bool weights = true;  ///< matrix and shift; else the shift alone
  double ridge = 1e-3;  ///< see least_squares()
  int rounds = 3;       ///< of layers in front of a Relu; others need one
  int64_t batch = 64;   ///< samples that run at once
};

/// Goes through the layers in topological order, so that each sees what the layers before it now
/// give. Of each, the answers a [rows, out] that the small network lacks at the kept channels are
/// fitted from what the layer reads x [rows, in], with 1 appended where the layer has a shift:
///
///     Δ = argmin Σ ‖a_dense − a_small − Δ x‖²,     W ← W + Δ / s,  b ← b + Δ₁ / s
///
/// s is the scale of a BatchNorm between layer and answer, else 1. Where the answer is a residual
/// sum, the layer makes up for what the other summand lacks (see fit_layers). One pass over the
/// data per layer, through no more of both networks than it needs; memory does not grow with the
/// number of samples.
///
/// With `weights` off only Δ₁ is fitted: the mean of what is missing, that of the removed channels
/// above all, goes into the bias.
///
/// @returns how many layers changed
/// @source He, Zhang, Sun, Channel Pruning for Accelerating Very Deep Neural Networks, ICCV 2017
/// (reconstruction, also of residual sums); Nagel et al., Data-Free Quantization Through Weight
/// Equalization and Bias Correction, ICCV 2019 (means into the bias)
int refit(const Graph& dense, SmallNetwork& small, const std::vector<std::string>& fixed,
          const Batches& batches, const RefitOptions& options);

/// Gives every BatchNormalization the mean and variance (biased, per channel over samples and
/// positions) of what it now reads, one after the other. @returns how many changed
int estimate_batch_norms(SmallNetwork& small, const Batches& batches, int64_t batch);

}  // namespace parsimony::training
