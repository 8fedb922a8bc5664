// Traced networks that can be trained: parts that follow their module's mode.
#pragma once

#include <torch/csrc/jit/api/module.h>

#include <string>
#include <vector>

namespace parsimony::torch_io {

/// A trace in evaluation mode writes that mode down as a constant: BatchNorm keeps its statistics
/// and Dropout drops nothing, whatever `train()` says. From now on they read the attribute
/// `training` of the module that calls them. What was written in training mode stays.
/// Gives the names of the modules concerned; they computed as in evaluation mode before.
std::vector<std::string> follow_mode(const torch::jit::Module& module);

}  // namespace parsimony::torch_io
