// Multiply-adds of a node, from the `macs` clause of its operator's notation.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "parsimony/graph/operators/match.h"

namespace parsimony {

/// The node's multiply-adds as a sum of products of axis sizes.
struct MacsFormula {
  using Factor = LabelPosition;  ///< the kept coordinates of one label
  using Product = std::vector<Factor>;
  std::vector<Product> products;
};

/// Empty if the operator has no multiply-adds, or more than 2^50.
std::optional<MacsFormula> macs_formula(const NodeView& view);

/// Multiply-adds of one node; 0 where the operator has none.
int64_t macs(const NodeView& view);

/// May the node have multiply-adds that `macs` does not count? True if its operator or a shape is
/// unknown, its form has no formula, there are more than 2^50, or its bodies are not analysed.
bool hides_macs(const NodeView& view);

}  // namespace parsimony
