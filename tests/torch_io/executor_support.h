// Models run by GraphModule, for its tests.
#pragma once

#include <ATen/ATen.h>
#include <onnx/onnx_pb.h>

#include <string>
#include <vector>

#include "parsimony/graph/graph.h"
#include "parsimony/graph/infer.h"
#include "parsimony/speedup/plan.h"

namespace parsimony::test {

using Tensors = std::vector<at::Tensor>;

/// Every node of the graph can be run.
bool runs(const Graph& graph);

/// In evaluation mode. With a plan: masked.
Tensors run(const Graph& graph, const Tensors& inputs, const Plan* plan = nullptr);

/// @throws std::runtime_error for types that libtorch does not have
at::Tensor tensor_of(const onnx::TensorProto& proto);

/// Seeded inputs of the sizes that the probe chooses where the model leaves them open; integers are
/// 0 or 1.
Tensors seeded_inputs(const Graph& graph, const Probe& probe, int seed);

/// Largest difference by largest magnitude of `expected`; infinite if shapes or types differ.
double relative_error(const at::Tensor& found, const at::Tensor& expected);

}  // namespace parsimony::test
