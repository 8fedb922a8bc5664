// If, Loop and Scan: nodes that run graphs.
#pragma once

#include <functional>
#include <vector>

#include "parsimony/torch_io/executor/call_impl.h"
#include "parsimony/torch_io/executor/program_impl.h"

namespace parsimony::executor {

/// Is it one of the three, with its bodies, in a version that is run?
bool is_control(const Node& node);

/// Runs a body on the inputs that the operator gives it.
using RunBody = std::function<Tensors(const BodyProgram& body, Tensors inputs)>;

/// Which of the node's bodies run, and how often, depends on the operands.
Tensors run_control(const Call& call, const IdVector<BodyId, BodyProgram>& bodies,
                    const RunBody& run);

}  // namespace parsimony::executor
