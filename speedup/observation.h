// What a network's own values are: asked for where constants are to be folded.
#pragma once

#include <functional>
#include <vector>

#include "parsimony/graph/infer.h"
#include "parsimony/masks/element_mask.h"

namespace parsimony {

/// A dimension of a value.
struct Dimension {
  ValueId value = kNone;
  int dim = 0;

  bool operator==(const Dimension&) const = default;
};

/// What a value holds at one index of a dimension.
struct IndexContent {
  double value = 0;
  /// It holds `value` for every input and at every place, up to rounding (1e-6 of its size).
  bool uniform = false;
};

/// Runs a network whose `masks` are zero on random inputs, and looks at dimensions of its values:
/// per dimension, one content per index.
/// @throws UnsupportedError if it cannot be run
using Observe = std::function<std::vector<std::vector<IndexContent>>(
    const Graph& graph, const Probe& probe, const std::vector<ElementMask>& masks,
    const std::vector<Dimension>& dimensions)>;

}  // namespace parsimony
