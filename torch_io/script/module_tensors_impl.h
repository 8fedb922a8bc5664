// The tensors of a module: iterating over them, finding shared memory, validating their bounds, and
// replacing them.
#pragma once

#include <c10/core/StorageImpl.h>
#include <torch/csrc/jit/api/module.h>

#include <functional>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "parsimony/torch_io/script/origins_impl.h"

namespace parsimony::torch_io::script {

/// Calls `visit` with each tensor among the module's attributes, including lists and objects, and
/// the constants of its code.
void for_each_tensor(const torch::jit::Module& module,
                     const std::function<void(const at::Tensor&)>& visit);

/// Returns memory that several weights refer to, or that the module also refers to in another way.
std::unordered_set<const c10::StorageImpl*> shared_memory(const Origins& origins);

/// Describes the first tensor among a module's attributes and constants that reaches outside of its
/// stored bytes, as sizes and strides specify, or that would need 64 MB more than those when
/// materialised. libtorch trusts the file and would read out of bounds.
std::optional<std::string> tensor_out_of_bounds(const torch::jit::Module& module);

/// A tensor and its replacement.
using TensorPairs = std::vector<std::pair<at::Tensor, at::Tensor>>;

/// Whether they are the same view of the same memory.
bool same_memory(const at::Tensor& a, const at::Tensor& b);

/// Replaces the first tensor of each pair by the second in all attributes, including lists and
/// tuples: all names of one tensor get the same new one, which requires gradients if any of them
/// did.
void replace_everywhere(const torch::jit::Module& module, const TensorPairs& pairs);

}  // namespace parsimony::torch_io::script
