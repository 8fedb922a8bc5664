// Other tensors in a module.
#pragma once

#include <torch/csrc/jit/api/module.h>

#include <utility>
#include <vector>

namespace parsimony::torch_io::script {

/// What a tensor is now, and what is to take its place.
using TensorPairs = std::vector<std::pair<at::Tensor, at::Tensor>>;

/// Do they show the same numbers at the same place?
bool same_memory(const at::Tensor& a, const at::Tensor& b);

/// Wherever attributes hold the first of a pair, within lists and tuples too, they hold the second
/// from now on: all names of one tensor get the same new one, which is trained if any was.
void replace_everywhere(const torch::jit::Module& module, const TensorPairs& pairs);

}  // namespace parsimony::torch_io::script
