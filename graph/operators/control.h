// If, Loop and Scan as shape inference sees them: what goes into their bodies and comes out.
#pragma once

#include <utility>
#include <vector>

#include "parsimony/graph/operators/schema.h"

namespace parsimony::operators {

/// Shapes of the inputs of the node's bodies, as far as the operands tell: those of the first turn.
Shapes shapes_inside(const NodeView& view);

/// Inputs of the body and the results that take their place in the next turn.
std::vector<std::pair<ValueId, ValueId>> carried(const NodeView& view);

}  // namespace parsimony::operators
