// Traces a torch::nn module to TorchScript for the reader.
#pragma once

#include <torch/csrc/jit/api/module.h>
#include <torch/nn/module.h>

#include <functional>
#include <vector>

namespace parsimony::torch_io {

/// Runs the module once on the tensors.
using Forward = std::function<at::Tensor(const std::vector<at::Tensor>&)>;

/// Returns a TorchScript module that shares the tensors and names of `module`, with a method
/// `forward` traced from one run of `forward` on `example`. Traced in evaluation mode without
/// gradients; the module's training flag is restored.
/// @throws ModelError if the run fails
torch::jit::Module traced(torch::nn::Module& module, const Forward& forward,
                          const std::vector<at::Tensor>& example);

}  // namespace parsimony::torch_io
