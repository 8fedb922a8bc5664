// Refits layers of a small network to the dense network's activations.
#pragma once

#include "parsimony/speedup/fit_layers.h"
#include "parsimony/speedup/small_network.h"
#include "parsimony/training/recovery/walk.h"
#include "parsimony/training/statistics/batches.h"

namespace parsimony::training {

struct RefitOptions {
  bool weights = true;  ///< matrix and shift; otherwise only the shift
  double ridge = 1e-3;  ///< see least_squares()
  int rounds = 3;       ///< for layers before a Relu; others need one
  int64_t batch = 64;   ///< samples per run
  int64_t most_bytes = kMostBytes;
  const RankGroup* ranks = nullptr;  ///< each has batches of its own, all as many
  /// Receives recurrent layers for which there are too few samples; null: nobody asks.
  std::vector<UnfitLayer>* unfit = nullptr;
};

/// Processes the layers in topological order, so that each reads the outputs of the refitted layers
/// before it. For each, the residual of its target a [rows, out] at the kept channels is fitted
/// from its input x [rows, in], with 1 appended if the layer has a shift:
///
///     Δ = argmin Σ ‖a_dense − a_small − Δ x‖²,     W ← W + Δ / s,  b ← b + Δ₁ / s
///
/// s is the scale of a BatchNorm between layer and target, else 1. Recurrent layers: see
/// RecurrentFit. If the target is a residual sum, the layer compensates for errors of the other
/// summand (see fit_layers). Both networks walk through the data once (see Walk); a layer takes as
/// many samples and positions as its fit needs. Memory does not grow with the number of samples.
///
/// Without `weights` only Δ₁ is fitted: the mean residual, mostly that of the removed channels, is
/// added to the bias.
///
/// @returns how many layers changed
/// @source He, Zhang, Sun, Channel Pruning for Accelerating Very Deep Neural Networks, ICCV 2017
/// (reconstruction, also of residual sums); Nagel et al., Data-Free Quantization Through Weight
/// Equalization and Bias Correction, ICCV 2019 (means into the bias)
int refit(const Graph& dense, SmallNetwork& small, const std::vector<std::string>& fixed,
          const Batches& batches, const RefitOptions& options);

/// Re-estimates mean and variance (biased, per channel over samples and positions) of every
/// BatchNormalization in turn. @returns how many changed
int estimate_batch_norms(SmallNetwork& small, const Batches& batches, int64_t batch,
                         const RankGroup* ranks = nullptr);

}  // namespace parsimony::training
