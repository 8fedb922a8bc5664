// Makes traced networks trainable: their operators follow the training mode.
#pragma once

#include <torch/csrc/jit/api/module.h>

#include <string>
#include <vector>

namespace parsimony::torch_io {

/// A trace in evaluation mode contains that mode as a constant: BatchNorm keeps its statistics and
/// Dropout is inactive, regardless of `train()`. This makes them read the attribute `training` of
/// the calling module. Operators traced in training mode are not changed. Returns the names of the
/// changed modules, which are in evaluation mode.
std::vector<std::string> follow_mode(const torch::jit::Module& module);

}  // namespace parsimony::torch_io
