// Multiply-adds of a node, from the `macs` clause of its operator's line.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "parsimony/graph/operators/match.h"

namespace parsimony {

/// The axes whose sizes make the node's multiply-adds: a sum of products.
struct MacsFormula {
  using Factor = LetterPlace;  ///< the kept coordinates of one letter
  using Product = std::vector<Factor>;
  std::vector<Product> products;
};

/// Empty where the operator has no multiply-adds, or more than 2^50.
std::optional<MacsFormula> macs_formula(const NodeView& view);

/// Multiply-adds of one node; 0 where the operator has none.
int64_t macs(const NodeView& view);

/// May the node have multiply-adds that `macs` does not know? Its operator or a shape is unknown, a
/// form of it has no formula, there are more than 2^50, or its bodies are not followed.
bool hides_macs(const NodeView& view);

}  // namespace parsimony
