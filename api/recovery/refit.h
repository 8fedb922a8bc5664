// Refits layers of a small network to the dense network's activations.
#pragma once

#include <Eigen/Core>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "parsimony/api/recovery/parts.h"
#include "parsimony/api/recovery/walk.h"
#include "parsimony/speedup/fit_layers.h"
#include "parsimony/speedup/small_network.h"

namespace parsimony {

struct RefitOptions {
  bool weights = true;  ///< matrix and shift; otherwise only the shift
  double ridge = 1e-3;  ///< see least_squares()
  int rounds = 3;       ///< for layers before a Relu; others need one
  int64_t batch = 64;   ///< samples per run
  int64_t most_bytes = kMostActivations;
  /// Receives layers that the engine does not fit, and recurrent ones for which there are too few
  /// samples; null: nobody asks.
  std::vector<UnfitLayer>* unfit = nullptr;
};

/// A layer of the small network that is fitted.
struct LayerFit {
  const FitLayer& layer;
  const Node& node;
  const Weight& weight;        ///< its matrix
  std::vector<int64_t> kept;   ///< of the dense answer's channels; empty: all
  std::vector<int64_t> steps;  ///< by spatial axis: every so many positions; empty: all
  bool weights = true;         ///< fit the matrix
  bool shift = true;           ///< fit a constant beside it
  const RefitOptions& options;
};

/// Sums over the rows of a layer: its inputs x, with 1 appended for a shift, and what its answer
/// lacks.
class LayerSums {
 public:
  virtual ~LayerSums() = default;
  /// Forgets what is lacking, which a round changes; the inputs stay.
  virtual void next_round() = 0;
  /// @param rectified  where Relu zeroes the dense target, any negative value is as good
  virtual void add(const Held& input, const Held& wanted, const Held& found, bool rectified) = 0;
  /// The change of the matrix, and of the constant behind it, for each group of the layer: [out,
  /// in (+ 1)]; empty if nothing is lacking.
  virtual std::vector<Eigen::MatrixXd> solve() = 0;
};

/// Of a value's channels, its axis 1.
struct ChannelMoments {
  int64_t rows = 0;
  std::vector<double> sum;
  std::vector<double> squares;
};

/// What recovery asks of an engine.
class RefitEngine : public Parts {
 public:
  /// The batches of both networks, the same ones from the first on.
  virtual HeldFeed feed(bool small) = 0;

  /// Why it cannot fit a layer; empty: it can.
  virtual std::string_view why_unfit(const Graph& /*small*/, const FitLayer& /*layer*/) {
    return {};
  }
  virtual std::unique_ptr<LayerSums> sums_for(const LayerFit& fit) = 0;

  /// Fits a recurrent layer. @param dense  by batch, as of recurrent_reads(). @returns did it?
  virtual bool fit_recurrent(const Graph& /*dense*/, SmallNetwork& /*small*/,
                             const FitLayer& /*layer*/, const std::vector<Held>& /*inputs*/,
                             const std::vector<std::vector<Held>>& /*wanted*/,
                             const RefitOptions& /*options*/, const std::string& /*reason*/) {
    return false;
  }

  virtual ChannelMoments moments_of(const Held& value) = 0;

  /// Processes that do the same together, each with batches of its own.
  virtual int ranks() const { return 1; }
  /// Replaces numbers by their sums over the ranks.
  virtual void sum_over_ranks(std::span<double> /*numbers*/) {}
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
///
/// Without `weights` only Δ₁ is fitted: the mean residual, mostly that of the removed channels, is
/// added to the bias.
///
/// @returns how many layers changed
/// @source He, Zhang, Sun, Channel Pruning for Accelerating Very Deep Neural Networks, ICCV 2017
/// (reconstruction, also of residual sums); Nagel et al., Data-Free Quantization Through Weight
/// Equalization and Bias Correction, ICCV 2019 (means into the bias)
int refit(RefitEngine& engine, const Graph& dense, SmallNetwork& small,
          const std::vector<std::string>& fixed, const RefitOptions& options);

/// Re-estimates mean and variance (biased, per channel over samples and positions) of every
/// BatchNormalization in turn. @returns how many changed
int estimate_batch_norms(RefitEngine& engine, SmallNetwork& small);

/// What the fit of a recurrent layer takes of the dense network: all its steps, its input, and the
/// state that it begins with, where that is computed.
std::vector<ValueId> recurrent_reads(const Graph& dense, const FitLayer& layer);

}  // namespace parsimony
