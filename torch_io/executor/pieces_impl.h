// What is computed from a weight that is larger than one would hold: some rows at a time.
#pragma once

#include <vector>

#include "parsimony/torch_io/executor/program_impl.h"

namespace parsimony::executor {

/// The operand of the node that can be read so: the matrix of MatMul, what Gather takes rows of.
/// kNone if there is none. Of programs that widen halves, whose pieces are of the other operand's
/// type.
ValueId read_in_pieces(const Program& program, const Step& step);

/// The node's result in each of several runs, for all of which a row is read once.
/// @throws c10::Error
Tensors compute_in_pieces(const std::vector<Call>& calls, const HeldWeight& weight);

}  // namespace parsimony::executor
