// Networks of libtorch on inputs from host memory, ready to be timed.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <vector>

#include "parsimony/engines/executable.h"

namespace parsimony::torch_io {

/// Outputs from inputs that were given before.
using BoundComputation = std::function<std::vector<at::Tensor>()>;

/// Copies, on the CPU. @throws UnsupportedError for types that libtorch does not have
std::vector<at::Tensor> to_tensors(const std::vector<TensorBytes>& inputs);

/// Each run calls `compute` and keeps the tensors that come out.
std::unique_ptr<BoundRun> bound_run(BoundComputation compute);

}  // namespace parsimony::torch_io
