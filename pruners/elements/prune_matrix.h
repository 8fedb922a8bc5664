// Prunes elements of one weight tensor.
#pragma once

#include <cstddef>
#include <string>
#include <variant>
#include <vector>

#include "parsimony/graph/axis_keep.h"
#include "parsimony/graph/graph.h"
#include "parsimony/masks/element_mask.h"
#include "parsimony/pruners/elements/contraction.h"
#include "parsimony/pruners/elements/element_tasks.h"
#include "parsimony/pruners/elements/rule.h"
#include "parsimony/pruners/settings.h"
#include "parsimony/pruners/statistics.h"

namespace parsimony {

/// A weight with new values.
struct PrunedMatrix {
  std::string tensor;
  DType dtype = DType::kFloat32;
  std::string criterion;  ///< "sparsegpt:2:4"
  ElementRule rule;
  elements::Contraction contraction;
  ElementMask mask;  ///< over the whole tensor; zero in removed slices too
  /// The whole tensor's elements, of its type, row-major; zero where the mask is.
  std::vector<std::byte> values;
};

namespace elements {

/// Why a tensor is not pruned.
using Refusal = std::string;

/// Prunes a weight as sliced by `cuts`. Ratios refer to the remaining elements of each row, block
/// of columns or matrix; for grouped convolutions, of each group.
/// @param statistics null if there are none
/// @throws ConfigError if the criterion needs data and has none; ModelError for a NaN, or for
/// moments that do not fit the weight
std::variant<PrunedMatrix, Refusal> prune_matrix(const Graph& graph, const ElementTask& task,
                                                 const Request& request,
                                                 const std::vector<AxisKeep>& cuts,
                                                 const Statistics* statistics);

}  // namespace elements
}  // namespace parsimony
