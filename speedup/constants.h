// Removes channels that are constant in a network with masked weights, such that the outputs do not
// change.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "parsimony/masks/mask.h"
#include "parsimony/speedup/observation.h"
#include "parsimony/speedup/plan.h"

namespace parsimony {

/// A pruner's selection as element masks: zeros in the `out` slices of the layers that produce the
/// channels, weight and bias. Normalisations are not masked, as in other tools.
std::vector<ElementMask> producer_masks(const Graph& graph, const Coupling& coupling,
                                        const AxisMasks& selection);

/// Intersects masks: an element is kept only if all masks keep it.
/// @throws ModelError if masks of a tensor have other shapes
void merge_masks(std::vector<ElementMask>& masks, const std::vector<ElementMask>& further);

/// @throws ModelError if a tensor does not exist (listing close matches) or has another shape
void check_masks(const Graph& graph, const std::vector<ElementMask>& masks);

/// Decides which channels are removed, and where their constants are folded.
class ConstantFolding {
 public:
  /// A channel is removed if its `out` slices are zero and it is constant at every reduction site
  /// (or all its `in` slices are zero), and if its constant c can be folded:
  ///   - into the bias of the consuming layer: b' = b + Σ_k c_k W_k, if nothing is padded;
  ///   - else into an absorbing channel k0, which is kept: W'_k0 = W_k0 + Σ_k c_k W_k / c_k0.
  /// `observe` is called only if a nonzero constant must be known; without it channels with such
  /// constants are kept.
  /// @throws UnsupportedError of `observe`
  ConstantFolding(const Graph& graph, const Facts& facts, const Probe& probe,
                  const Coupling& coupling, std::vector<ElementMask> masks, const Observe& observe);
  ~ConstantFolding();
  ConstantFolding(ConstantFolding&&) noexcept;
  ConstantFolding& operator=(ConstantFolding&&) noexcept;

  const AxisMasks& channels() const;  ///< the channels that are kept
  int absorbers() const;
  /// Per group and reason, the masked channels that are kept.
  const std::vector<std::string>& notes() const;

  /// Completes a plan that removes all but `channels()`: adds the masks, and an update for every
  /// tensor whose remaining values change.
  void complete(Plan& plan) const;
  /// Per mask, what became of it in a plan that removes all but `channels()`.
  std::vector<MaskOutcome> outcomes(const Plan& plan) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace parsimony
