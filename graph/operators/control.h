// If, Loop and Scan as inference and the nodes in their bodies see them.
#pragma once

#include <utility>
#include <vector>

#include "parsimony/graph/operators/schema.h"

namespace parsimony::operators {

/// Shapes of the inputs of the node's bodies in the first iteration, as far as the operands
/// determine them.
Shapes shapes_inside(const NodeView& view);

/// Inputs of the body and the results that replace them in the next iteration.
std::vector<std::pair<ValueId, ValueId>> carried(const NodeView& view);

/// Is the node in a branch of If that these sizes do not take, and that fits whatever becomes of
/// the channels that it reads?
bool is_passed_over(const NodeView& view);

/// How often a Loop runs: as often as its trip count says if that is known, else an assumption.
int64_t turns_of(const NodeView& view);

}  // namespace parsimony::operators
