// How many elements of each matrix the level pruner zeroes.
#pragma once

#include <cstdint>
#include <vector>

#include "parsimony/graph/graph.h"
#include "parsimony/pruners/settings.h"

namespace parsimony {

/// A matrix and the request that it follows.
struct LeveledMatrix {
  const Weight* weight = nullptr;
  int request = kNone;  ///< index into Settings::requests
};

/// How many elements of least magnitude are removed, per matrix.
///
/// Threshold: those below it. Local: floor(ratio · elements) of each. Global: of all matrices that
/// share the budget together; one threshold applies to all matrices within their bounds. Each loses
/// at least ceil(min_ratio · elements) and at most floor(max_ratio · elements).
/// @throws ModelError if a weight that is ranked globally has a NaN
/// @source NNI 3.0, LevelPruner and its documents on max_sparse_ratio
std::vector<int64_t> level_counts(const Settings& settings,
                                  const std::vector<LeveledMatrix>& matrices);

}  // namespace parsimony
