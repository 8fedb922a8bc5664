// How a node's operator relates the dimensions of its operands and results.
#pragma once

#include <string>

#include "parsimony/graph/factors.h"
#include "parsimony/graph/operators/schema.h"

namespace parsimony {

/// Factors of any node. Unknown operators, and rules that fail, pin all dimensions of their
/// operands.
Factors factor(const NodeView& view);

/// Factors that pin all operands and results of the node.
Factors pin_operands(const NodeView& view, const std::string& reason);

}  // namespace parsimony
