// Refits layers of a small network to the dense network's activations.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "parsimony/api/recovery/fit_sums.h"
#include "parsimony/api/recovery/part.h"
#include "parsimony/api/recovery/walk.h"
#include "parsimony/speedup/fit_layers.h"
#include "parsimony/speedup/recovery.h"
#include "parsimony/speedup/small_network.h"

namespace parsimony {

/// The outcome for each layer.
struct RefitLog {
  std::vector<LayerRecovery> fits;  ///< fitted layers
  /// Recurrent layers with too few samples.
  std::vector<UnfitLayer> unfit;
};

struct RefitOptions {
  bool weights = true;               ///< matrix and shift; otherwise only the shift
  std::optional<double> ridge = {};  ///< see validated_fit()
  int rounds = 3;                    ///< for layers followed by ReLU; others need one
  int64_t batch = 64;                ///< samples per run; see fit_batch()
  int64_t most_bytes = kMostActivations;
  RefitLog* log = nullptr;  ///< receives the outcomes; may be null
};

/// Returns the number of samples per run, at most `most`, so that `samples` make several batches.
int64_t fit_batch(int64_t samples, int64_t most);

/// The engine and the batches that a refit runs on.
struct RefitData {
  Engine& engine;
  /// Returns the batches of either network, from the first one on.
  std::function<ValueSource(bool small)> feed;
  Together together = {};
};

/// Processes the layers in topological order, so that each reads the outputs of the refitted layers
/// before it. For each, the residual of its target a [rows, out] at the kept channels is fitted
/// from its input x [rows, in], with 1 appended if the layer has a shift:
///
///     Δ = argmin Σ ‖a_dense − a_small − Δ x‖²,     W ← W + Δ / s,  b ← b + Δ₁ / s
///
/// s is the scale of a BatchNorm between layer and target, else 1. If the target is a residual sum,
/// the layer compensates for errors of the other summand (see fit_layers). Both networks walk
/// through the data once (see Walk); a layer takes as many samples and positions as its fit needs.
/// Memory does not grow with the number of samples.
/// One batch in five is held out (see kHeldOutPeriod): the error on these selects the ridge, and a
/// layer whose fit increases that error keeps its weights (see validated_fit). The assigned values
/// are fitted with that ridge to all batches.
///
/// Without `weights` only Δ₁ is fitted: the mean residual, mostly that of the removed channels, is
/// added to the bias.
///
/// @returns how many layers changed
/// @source He, Zhang, Sun, Channel Pruning for Accelerating Very Deep Neural Networks, ICCV 2017
/// (reconstruction, also of residual sums); Nagel et al., Data-Free Quantization Through Weight
/// Equalization and Bias Correction, ICCV 2019 (means into the bias)
int refit(const RefitData& data, const Graph& dense, SmallNetwork& small,
          const std::vector<std::string>& fixed, const RefitOptions& options);

/// Re-estimates mean and variance (biased, per channel over samples and positions) of every
/// BatchNormalization in turn. @returns how many changed
int estimate_batch_norms(const RefitData& data, SmallNetwork& small);

}  // namespace parsimony
