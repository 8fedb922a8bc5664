// Refits layers of a small network to the dense network's activations.
#pragma once

#include <Eigen/Core>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "parsimony/api/recovery/parts.h"
#include "parsimony/api/recovery/walk.h"
#include "parsimony/speedup/fit_layers.h"
#include "parsimony/speedup/least_squares.h"
#include "parsimony/speedup/recovery.h"
#include "parsimony/speedup/small_network.h"

namespace parsimony {

/// What became of the layers.
struct RefitLog {
  std::vector<LayerRecovery> fits;  ///< those that were fitted
  /// Those that the engine does not fit, and recurrent ones for which there are too few samples.
  std::vector<UnfitLayer> unfit;
};

struct RefitOptions {
  bool weights = true;               ///< matrix and shift; otherwise only the shift
  std::optional<double> ridge = {};  ///< see judged_fit()
  int rounds = 3;                    ///< for layers before a Relu; others need one
  int64_t batch = 64;                ///< samples per run; see fit_batch()
  int64_t most_bytes = kMostActivations;
  RefitLog* log = nullptr;  ///< null: nobody asks
};

/// One batch in so many is held out of a fit, the last of them.
inline constexpr int64_t kHeldOut = 5;

/// Samples per run, at most `most`, of which so many make several batches.
int64_t fit_batch(int64_t samples, int64_t most);

/// A layer of the small network that is fitted.
struct LayerFit {
  const FitLayer& layer;
  const Node& node;
  const Weight& weight;        ///< its matrix
  std::vector<int64_t> kept;   ///< of the dense answer's channels; empty: all
  std::vector<int64_t> steps;  ///< by spatial axis: every so many positions; empty: all
  bool weights = true;         ///< fit the matrix
  bool shift = true;           ///< fit a constant beside it
};

/// Sums over the rows of a layer: its inputs x, with 1 appended for a shift, and what its answer
/// lacks.
class LayerSums {
 public:
  /// What is added of a batch.
  struct How {
    bool rectified = false;  ///< where Relu zeroes the dense target, any negative value is as good
    bool held_out = false;   ///< it only judges the fit
    auto operator<=>(const How&) const = default;
  };

  virtual ~LayerSums() = default;
  /// Forgets what is lacking, which a round changes; the inputs stay.
  virtual void next_round() = 0;
  virtual void add(const Held& input, const Held& wanted, const Held& found, How how) = 0;
  /// For each group of the layer those whose fit is the change of the matrix, and of the constant
  /// behind it: [out, in (+ 1)]. Empty if nothing was added.
  virtual std::vector<SplitSums> sums() = 0;
};

/// What the fit of a layer takes, by batch.
struct FitData {
  std::vector<Held> inputs;
  /// Values of the dense network: the answer; of a recurrent layer those of recurrent_reads().
  std::vector<std::vector<Held>> wanted;
  std::vector<bool> held_out;  ///< batches that only judge the fit
  std::vector<int64_t> steps;  ///< see LayerFit
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

  /// Fits a recurrent layer, and changes its weights if that helps.
  virtual JudgedFit fit_recurrent(const Graph& /*dense*/, SmallNetwork& /*small*/,
                                  const FitLayer& /*layer*/, const FitData& /*data*/,
                                  const RefitOptions& /*options*/, const std::string& /*reason*/) {
    return {};
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
/// One batch in five is held out: by the error on these the ridge is chosen, and a layer whose fit
/// makes that error larger keeps its weights (see judged_fit). What is assigned is fitted, with
/// that ridge, to all batches.
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
