// What a module does beside `forward` in evaluation mode. Private to torch_io/script.
#pragma once

#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/ir/ir.h>

#include <string>
#include <vector>

namespace parsimony::torch_io::script {

/// "encoder.features": methods that neither `forward` nor that of a part calls. Looks at graphs
/// that are not inlined.
std::vector<std::string> uncalled_methods(const torch::jit::Module& module);

/// Is the condition computed from some module's `training`?
bool is_made_of_mode(const torch::jit::Value& condition);

}  // namespace parsimony::torch_io::script
