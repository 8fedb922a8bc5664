// The level pruner: the smallest elements of a weight become zero; no shape changes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "parsimony/graph/graph.h"
#include "parsimony/pruners/settings.h"

namespace parsimony {

/// A matrix and the request that it follows.
struct LeveledMatrix {
  const Weight* weight = nullptr;
  int request = kNone;  ///< index into Settings::requests
};

/// Counts the elements of least magnitude to remove, per matrix.
///
/// Threshold: those below it. Local: floor(ratio · elements) of each. Global: of all matrices that
/// share the budget together; one threshold applies to all matrices within their bounds. Each loses
/// at least ceil(min_ratio · elements) and at most floor(max_ratio · elements).
/// @throws ModelError if a weight that is ranked globally has a NaN
/// @source NNI 3.0, LevelPruner and its documents on max_sparse_ratio
std::vector<int64_t> level_counts(const Settings& settings,
                                  const std::vector<LeveledMatrix>& matrices);

/// The `smallest` elements of least magnitude of a tensor become zero, see
/// ModelEditor::zero_smallest and mask_smallest.
struct TensorZeros {
  std::string tensor;
  int64_t smallest = 0;

  bool operator==(const TensorZeros&) const = default;
};

/// Counts the elements of each weight matrix that the "level" requests set to zero, request by
/// request in the order of the layers. Ties go to the earlier tensor. A matrix that several layers
/// use follows the most conservative of them. Unsigned integers have no zero and are not pruned.
/// @throws ModelError if a weight that is ranked globally has a NaN
/// @source NNI 3.0, LevelPruner
std::vector<TensorZeros> prune_elements(const Graph& graph, const Settings& settings);

}  // namespace parsimony
