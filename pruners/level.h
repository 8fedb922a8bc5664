// The level pruner: the smallest elements of a weight become zero; no shape changes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "parsimony/graph/graph.h"
#include "parsimony/pruners/settings.h"

namespace parsimony {

/// The `smallest` elements of least magnitude of a tensor become zero, see
/// ModelEditor::zero_smallest and mask_smallest.
struct TensorZeros {
  std::string tensor;
  int64_t smallest = 0;

  bool operator==(const TensorZeros&) const = default;
};

/// How many elements of each weight matrix the requests with criterion "level" zero (see
/// level_counts.h), request by request in the order of the layers. Ties go to the earlier tensor. A
/// matrix that several layers use follows the most conservative of them. Unsigned integers have no
/// zero and are not pruned.
/// @throws ModelError if a weight that is ranked globally has a NaN
/// @source NNI 3.0, LevelPruner
std::vector<TensorZeros> prune_elements(const Graph& graph, const Settings& settings);

}  // namespace parsimony
