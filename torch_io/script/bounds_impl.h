// Tensors of a file that say to hold more numbers than the file has.
#pragma once

#include <torch/csrc/jit/api/module.h>

#include <optional>
#include <string>

namespace parsimony::torch_io::script {

/// The first tensor among a module's attributes and the constants of its code whose sizes and
/// strides, [..] elements, reach outside of the bytes that were stored for it, or that would take
/// 64 MB more than those when it is written out; in words. libtorch believes what a file says of
/// its tensors, and reads whatever lies there.
std::optional<std::string> tensor_out_of_bounds(const torch::jit::Module& module);

}  // namespace parsimony::torch_io::script
