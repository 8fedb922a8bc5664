// Observed values of a network, needed to fold constants.
#pragma once

#include <functional>
#include <vector>

#include "parsimony/graph/infer.h"
#include "parsimony/masks/mask.h"

namespace parsimony {

/// A dimension of a value.
struct Dimension {
  ValueId value = kNone;
  int dim = 0;

  bool operator==(const Dimension&) const = default;
};

/// The contents of a value at one index of a dimension.
struct IndexContent {
  double value = 0;
  /// All elements equal `value` for every input, up to rounding (1e-6 of its magnitude).
  bool uniform = false;
};

/// Runs a network with `masks` applied on random inputs, and observes dimensions of its values: per
/// dimension, one entry per index.
/// @throws UnsupportedError if it cannot be run
using Observe = std::function<std::vector<std::vector<IndexContent>>(
    const Graph& graph, const Probe& probe, const std::vector<ElementMask>& masks,
    const std::vector<Dimension>& dimensions)>;

/// The outcome for a tensor's masked elements.
struct MaskOutcome {
  std::string tensor;
  int64_t zeros = 0;    ///< masked elements
  int64_t removed = 0;  ///< those removed with their channels; the others stay zero
};

}  // namespace parsimony
