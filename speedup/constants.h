// Removal of channels that a network whose weights are masked holds constant, so that what remains
// computes the same.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "parsimony/masks/axis_mask.h"
#include "parsimony/masks/element_mask.h"
#include "parsimony/speedup/observation.h"
#include "parsimony/speedup/plan.h"

namespace parsimony {

/// What the masks of a pruner's selection are: zeros in the `out` slices of the layers that produce
/// the channels, weight and bias. Normalisations stay, as in other tools.
std::vector<ElementMask> producer_masks(const Graph& graph, const Coupling& coupling,
                                        const AxisMasks& selection);

/// Adds masks to others: an element stays only where all keep it.
/// @throws ModelError if masks of a tensor have other shapes
void merge_masks(std::vector<ElementMask>& masks, const std::vector<ElementMask>& further);

/// @throws ModelError for a tensor that is not there, with near candidates, or has another shape
void check_masks(const Graph& graph, const std::vector<ElementMask>& masks);

/// What became of a tensor's masked elements.
struct MaskOutcome {
  std::string tensor;
  int64_t zeros = 0;  ///< masked elements
  int64_t gone = 0;   ///< of them, those that went with their channels; the rest stays zero
};

/// Which channels go, and where their constants do.
class ConstantFolding {
 public:
  /// A channel goes if its `out` slices are zero and it is constant wherever it is summed over (or
  /// if all its `in` slices are zero), and if its constant c can be folded:
  ///   - into the bias of the layer that sums: b' = b + Σ_k c_k W_k, where nothing is padded;
  ///   - else into a carrier k0, a channel that stays: W'_k0 = W_k0 + Σ_k c_k W_k / c_k0.
  /// `observe` is asked only where a constant other than zero must be known; without it channels
  /// with such stay.
  /// @throws UnsupportedError of `observe`
  ConstantFolding(const Graph& graph, const Facts& facts, const Probe& probe,
                  const Coupling& coupling, std::vector<ElementMask> masks, const Observe& observe);
  ~ConstantFolding();
  ConstantFolding(ConstantFolding&&) noexcept;
  ConstantFolding& operator=(ConstantFolding&&) noexcept;

  const AxisMasks& channels() const;  ///< those that stay
  int carriers() const;
  /// Per group and reason, masked channels that stay.
  const std::vector<std::string>& notes() const;

  /// Completes a plan that removes `channels()`: the masks, and a fold for every tensor whose
  /// remaining values change.
  void complete(Plan& plan) const;
  /// Per mask, what a plan that removes `channels()` makes of it.
  std::vector<MaskOutcome> outcomes(const Plan& plan) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace parsimony
