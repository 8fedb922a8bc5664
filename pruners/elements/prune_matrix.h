// One weight tensor loses elements.
#pragma once

#include <cstddef>
#include <string>
#include <variant>
#include <vector>

#include "parsimony/graph/axis_keep.h"
#include "parsimony/graph/graph.h"
#include "parsimony/masks/element_mask.h"
#include "parsimony/pruners/elements/contraction.h"
#include "parsimony/pruners/elements/orders.h"
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

/// Why a tensor keeps its elements.
using Refusal = std::string;

/// Prunes what `cuts` leave of a weight. Shares are of what is left: of each row, block of columns
/// or matrix; of grouped convolutions in each group.
/// @param statistics null where there are none
/// @throws ConfigError if the criterion needs data and has none; ModelError for a NaN, or for
/// moments that do not fit the weight
std::variant<PrunedMatrix, Refusal> prune_matrix(const Graph& graph, const Order& order,
                                                 const Request& request,
                                                 const std::vector<AxisKeep>& cuts,
                                                 const Statistics* statistics);

}  // namespace elements
}  // namespace parsimony
