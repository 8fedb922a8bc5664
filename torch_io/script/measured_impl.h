// Measures the sizes of values that no lowering covers by running the program.
#pragma once

#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/ir/ir.h>

#include <memory>
#include <unordered_map>
#include <vector>

#include "parsimony/graph/graph.h"
#include "parsimony/graph/input_spec.h"

namespace parsimony::torch_io::script {

struct Measured {
  Shape dims;
  DType dtype = DType::kUnknown;
};

using Measurements = std::unordered_map<const torch::jit::Value*, Measured>;

/// Runs `graph`, the module's `forward`, twice on random numbers. `values` are tensors of its
/// outermost block; those whose sizes depend on the data are omitted, and all if it cannot be run.
/// @param inputs of `forward`, in order, with shape and type
Measurements measure(const torch::jit::Module& module,
                     const std::shared_ptr<torch::jit::Graph>& graph,
                     const std::vector<torch::jit::Value*>& values,
                     const std::vector<InputSpec>& inputs);

}  // namespace parsimony::torch_io::script
