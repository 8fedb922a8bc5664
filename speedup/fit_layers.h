// The layers that can be refitted to data, and the value that each should reproduce.
#pragma once

#include <string>
#include <vector>

#include "parsimony/graph/graph.h"

namespace parsimony {

/// A layer that multiplies its input by its own matrix: Conv, Gemm, or MatMul with a 2-d weight,
/// which may be transposed before it.
struct FitLayer {
  NodeId node = kNone;
  ValueId input = kNone;  ///< what is multiplied
  WeightId weight = kNone;
  int out_axis = 0;  ///< of the weight: Conv [out, in, ..k], Gemm either way, MatMul [in, out]
  /// A vector [out] read by this layer only: its bias, or the running mean of the BatchNorm after
  /// it. kNone if there is none, or if it has other readers.
  WeightId shift = kNone;
  double shift_sign = 1;   ///< -1 for a running mean: it is subtracted
  NodeId norm = kNone;     ///< a BatchNormalization directly after the layer
  ValueId answer = kNone;  ///< the value to reproduce from the dense network
  int answer_axis = 1;     ///< of the channels in `answer`
  bool rectified = false;  ///< only Relu nodes read `answer`
};

/// In topological order. If a layer's output is added to another activation, as in residual blocks,
/// the sum is its `answer`, so that it compensates for errors of the other summand. This requires
/// that no later layer contributes to that summand, since those are refitted later.
///
///     x -> Conv -> [BatchNormalization] -> [Add] -> answer
///
/// Skipped: layers that share their matrix, Gemm with alpha or beta, computed matrices, types other
/// than floating point, and matrices named in `fixed`.
std::vector<FitLayer> fit_layers(const Graph& graph, const std::vector<std::string>& fixed = {});

/// BatchNormalizations in inference mode whose statistics are not shared, in topological order.
std::vector<NodeId> batch_norms(const Graph& graph);

/// Calls `visit` with what a node reads: its operands, and the results of its bodies.
template <typename Visit>
void for_each_read(const Graph& graph, const Node& node, const Visit& visit) {
  for (const ValueId v : node.inputs) {
    if (v != kNone) visit(v);
  }
  for (const BodyId b : node.bodies) {
    for (const ValueId v : graph.bodies[b].outputs) visit(v);
  }
}

/// The node that computes each value. A graph that was edited does not keep Value::producer.
IdVector<ValueId, NodeId> producers_of(const Graph& graph);

/// Nodes that compute `wanted`, in order. Those that are `done` and values that are `known` need
/// nothing; empty: there are none.
std::vector<NodeId> nodes_for(const Graph& graph, const std::vector<ValueId>& wanted,
                              const IdVector<NodeId, bool>& done = {},
                              const IdVector<ValueId, bool>& known = {});

/// The subgraph that computes `wanted`, which become its outputs. Values keep their ids.
Graph part_for(const Graph& graph, const std::vector<ValueId>& wanted);

}  // namespace parsimony
