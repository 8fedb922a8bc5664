// Layers: the nodes whose weight matrices are pruned and that a configuration can name; and the
// sites at which they read the channels of a group.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "parsimony/graph/graph.h"
#include "parsimony/graph/operators/linear_form.h"
#include "parsimony/masks/coupling.h"

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

  /// The same for all its readers.
  std::vector<NodeId> reading(ValueId weight) const;

 private:
  const Graph& graph_;
  IdVector<ValueId, bool> weights_only_;
  IdVector<NodeId, bool> is_layer_;
};

/// One operand of one layer.
struct Site {
  GroupId group = kNone;
  NodeId reader = kNone;  ///< kNone: the output of a layer, if no weight consumes the channels
  int input = 0;          ///< of the reader
  ValueId value = kNone;
  int dim = 0;                    ///< of the value, along which the channels lie
  std::vector<int64_t> channels;  ///< at each index along `dim`; group.size for other groups
};

/// The operands of the layers whose matrices consume a group's channels: after normalisation and
/// activation function. A group that no matrix consumes is observed at the layers that produce it.
std::vector<Site> sites_of(const Graph& graph, const Coupling& coupling);

/// The data that a layer multiplies by a matrix of its own, as the model stores it.
struct MatrixInput {
  NodeId node = kNone;
  int operand = 0;  ///< of the node: the data
  ValueId value = kNone;
  const Weight* weight = nullptr;  ///< the matrix
  LinearKind kind = LinearKind::kNotLinear;
};

/// Returns the inputs of the named matrices of Conv, ConvTranspose, Gemm and MatMul, and of the
/// input matrices of GRU, LSTM and RNN. Matrices of other layers, and stacked matrices, have none.
std::vector<MatrixInput> matrix_inputs(const Graph& graph, const std::set<std::string>& requested);

/// The first dimension of the value that has channels of the group; kNone if there is none.
int dim_of_group(const Coupling& coupling, ValueId value, GroupId group);

/// Site::channels along a dimension of the value.
std::vector<int64_t> channels_along(const Coupling& coupling, ValueId value, int dim,
                                    GroupId group);

}  // namespace parsimony
