// Detects NaN in weights: a network with one computes nothing.
#pragma once

#include <optional>

#include "parsimony/graph/graph.h"

namespace parsimony {

/// Index of the first NaN; empty if there is none, or if the type has none. Infinities are allowed:
/// attention masks use them.
std::optional<int64_t> find_nan(const Weight& weight);

/// Reads every floating-point weight once, at memory speed.
/// @throws ModelError naming the first weight with a NaN
void check_weights(const Graph& graph);

}  // namespace parsimony
