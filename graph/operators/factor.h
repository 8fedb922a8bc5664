// How the operator of a node ties the dimensions of its operands and results together.
#pragma once

#include <string>

#include "parsimony/graph/factors.h"
#include "parsimony/graph/operators/schema.h"

namespace parsimony {

/// Factors of any node. Unknown operators pin what they touch, and so does a rule that fails.
Factors factor(const NodeView& view);

/// Factors that let no operand and no result of the node shrink.
Factors pin_operands(const NodeView& view, const std::string& reason);

}  // namespace parsimony
