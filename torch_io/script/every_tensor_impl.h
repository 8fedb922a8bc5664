// All tensors of a module.
#pragma once

#include <torch/csrc/jit/api/module.h>

#include <functional>

namespace parsimony::torch_io::script {

/// Calls `visit` with each tensor among the module's attributes, within lists and objects too, and
/// the constants of its code.
void for_each_tensor(const torch::jit::Module& module,
                     const std::function<void(const at::Tensor&)>& visit);

}  // namespace parsimony::torch_io::script
