// Which nodes are layers: those whose weight matrices are pruned and that a configuration can name.
#pragma once

#include <vector>

#include "parsimony/graph/graph.h"

namespace parsimony {

/// The layers of a graph: nodes that apply a weight matrix to data according to their schema
/// (convolutions, matrix products, recurrent layers, embeddings, …). The weight may reach the node
/// through others that compute on weights alone: DequantizeLinear, Transpose, Reshape, weight
/// normalisation.
class Layers {
 public:
  explicit Layers(const Graph& graph);

  bool contains(NodeId node) const { return is_layer_[node]; }

  /// The weight matrices (rank ≥ 2) of a layer, as the model stores them.
  std::vector<ValueId> weights(NodeId layer) const;

  /// The layers to which a weight belongs that `reader` reads: `reader` itself, or the layers that
  /// use its result.
  std::vector<NodeId> using_weight_of(NodeId reader) const;

 private:
  const Graph& graph_;
  IdVector<ValueId, bool> made_of_weights_;
  IdVector<NodeId, bool> is_layer_;
};

}  // namespace parsimony
