// If and Loop: nodes that run graphs.
#pragma once

#include <functional>
#include <span>

#include "parsimony/torch_io/executor/call_impl.h"
#include "parsimony/torch_io/executor/program_impl.h"

namespace parsimony::executor {

/// Is it one of the two, with its bodies?
bool is_control(const Node& node);

/// Runs a body on the inputs that the operator gives it.
using RunBody = std::function<Tensors(const BodyProgram& body, Tensors inputs)>;

/// Which bodies run, and how often, depends on the operands.
Tensors run_control(const Call& call, std::span<const BodyProgram> bodies, const RunBody& run);

}  // namespace parsimony::executor
