// The tensors of a module: all of them, those whose memory must not change for the sake of one
// weight, those that say to hold more numbers than the file has, and others in their place.
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

/// Calls `visit` with each tensor among the module's attributes, within lists and objects too, and
/// the constants of its code.
void for_each_tensor(const torch::jit::Module& module,
                     const std::function<void(const at::Tensor&)>& visit);

/// What several weights show, or a tensor of the module in another way than a weight does.
std::unordered_set<const c10::StorageImpl*> shared_memory(const Origins& origins);

/// The first tensor among a module's attributes and the constants of its code whose sizes and
/// strides, [..] elements, reach outside of the bytes that were stored for it, or that would take
/// 64 MB more than those when it is written out; in words. libtorch believes what a file says of
/// its tensors, and reads whatever lies there.
std::optional<std::string> tensor_out_of_bounds(const torch::jit::Module& module);

/// What a tensor is now, and what is to take its place.
using TensorPairs = std::vector<std::pair<at::Tensor, at::Tensor>>;

/// Do they show the same numbers at the same place?
bool same_memory(const at::Tensor& a, const at::Tensor& b);

/// Wherever attributes hold the first of a pair, within lists and tuples too, they hold the second
/// from now on: all names of one tensor get the same new one, which is trained if any was.
void replace_everywhere(const torch::jit::Module& module, const TensorPairs& pairs);

}  // namespace parsimony::torch_io::script
