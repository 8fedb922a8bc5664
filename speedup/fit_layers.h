// The layers that can be refitted to data, and where the answer of each shows.
#pragma once

#include <string>
#include <vector>

#include "parsimony/graph/graph.h"

namespace parsimony {

/// A layer that multiplies what it reads with a matrix of its own: Conv, Gemm, or MatMul with a
/// weight of two dimensions.
struct FitLayer {
  NodeId node = kNone;
  ValueId input = kNone;  ///< what is multiplied
  WeightId weight = kNone;
  int out_axis = 0;  ///< of the weight: Conv [out, in, ..k], Gemm either way, MatMul [in, out]
  /// A vector [out] that is this layer's alone: its bias, or the running mean of the BatchNorm
  /// behind it. kNone where there is none, or where others read it as well.
  WeightId shift = kNone;
  double shift_sign = 1;   ///< -1 for a running mean: it is subtracted
  NodeId norm = kNone;     ///< a BatchNormalization right behind the layer
  ValueId answer = kNone;  ///< what should be as in the dense network
  int answer_axis = 1;     ///< of the channels in `answer`
  bool rectified = false;  ///< only Relu nodes read the answer
};

/// In topological order. Where a layer's output is added to another activation, as in residual
/// blocks, the sum is its answer: so it makes up for what the other summand lacks. That holds if no
/// layer behind it has part in that summand, for those are refitted later.
///
///     x -> Conv -> [BatchNormalization] -> [Add] -> answer
///
/// Left out: layers that share their matrix, Gemm with alpha or beta, computed matrices, types that
/// are no floating-point numbers, and matrices in `fixed` (names).
std::vector<FitLayer> fit_layers(const Graph& graph, const std::vector<std::string>& fixed = {});

/// BatchNormalizations in inference form, in topological order; none whose statistics are shared.
std::vector<NodeId> batch_norms(const Graph& graph);

/// The nodes that compute `wanted`, which become the outputs. Values keep their numbers.
Graph part_for(const Graph& graph, const std::vector<ValueId>& wanted);

}  // namespace parsimony
