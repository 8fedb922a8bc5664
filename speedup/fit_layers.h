// The layers that can be refitted to data, and the value that each should reproduce.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "parsimony/graph/graph.h"
#include "parsimony/graph/reads.h"
#include "parsimony/speedup/small_network.h"

namespace parsimony {

/// A layer that multiplies its input by its own matrix: Conv, ConvTranspose, Gemm, MatMul with a
/// 2-d weight, which may be transposed before it; or a recurrent layer, which multiplies its state,
/// too.
struct FitLayer {
  NodeId node = kNone;
  ValueId input = kNone;  ///< what is multiplied
  WeightId weight = kNone;
  /// The weight's axis of outputs: Conv [out, in, ..k], ConvTranspose [in, out, ..k], Gemm either
  /// way, MatMul [in, out], recurrent [.., gates · out, in].
  int out_axis = 0;
  WeightId state = kNone;  ///< a recurrent layer's matrix of the state, [.., gates · out, out]
  /// A vector [out] read by this layer only: its bias, or the running mean of the BatchNorm after
  /// it. kNone if there is none, or if it has other readers.
  WeightId shift = kNone;
  double shift_sign = 1;      ///< -1 for a running mean: it is subtracted
  NodeId norm = kNone;        ///< a BatchNormalization directly after the layer
  ValueId answer = kNone;     ///< the value to reproduce from the dense network
  int output_axis = 1;        ///< of the channels in `answer`
  WeightId channels = kNone;  ///< a weight of the layer that has the answer's channels
  int channels_axis = 0;      ///< along this axis
  bool rectified = false;     ///< only Relu nodes read `answer`
};

/// In topological order. If a layer's output is added to another activation, as in residual blocks,
/// the sum is its `answer`, so that it compensates for errors of the other summand. This requires
/// that no later layer contributes to that summand, since those are refitted later.
///
///     x -> Conv -> [BatchNormalization] -> [Add] -> answer
///
/// Of a recurrent layer `answer` are all its steps, or the last one if it gives no others. Skipped:
/// what unfit_layers() has, and computed matrices.
std::vector<FitLayer> fit_layers(const Graph& graph, const std::vector<std::string>& fixed = {});

/// A layer with a matrix that cannot be refitted.
struct UnfitLayer {
  NodeId node = kNone;
  std::string_view why;  ///< "shares its matrix"
};

/// In topological order. `fixed` are matrices with single elements that stay zero.
std::vector<UnfitLayer> unfit_layers(const Graph& graph,
                                     const std::vector<std::string>& fixed = {});

/// Returns the channels of the layer's answer that the plan keeps; empty: all of them.
std::vector<int64_t> kept_channels(const SmallNetwork& small, const FitLayer& layer);

/// BatchNormalizations in inference mode whose statistics are not shared, in topological order.
std::vector<NodeId> batch_norms(const Graph& graph);

/// The node that computes each value. A graph that was edited does not keep Value::producer.
IdVector<ValueId, NodeId> producers_of(const Graph& graph);

/// Nodes that compute `requested`, in order. Those that are `done` and values that are `known` need
/// nothing; empty: there are none.
std::vector<NodeId> nodes_for(const Graph& graph, const std::vector<ValueId>& requested,
                              const IdVector<NodeId, bool>& done = {},
                              const IdVector<ValueId, bool>& known = {});

/// The subgraph that computes `requested`, which become its outputs. Values keep their ids.
Graph part_for(const Graph& graph, const std::vector<ValueId>& requested);

}  // namespace parsimony
