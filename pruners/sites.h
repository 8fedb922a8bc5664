// The sites at which the channels of a group are read.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "parsimony/graph/operators/linear_form.h"
#include "parsimony/masks/coupling.h"

namespace parsimony {

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

/// Of the matrices with these names of Conv, ConvTranspose, Gemm, MatMul and the input matrices of
/// GRU, LSTM and RNN. Matrices of other layers, and stacked matrices, have none.
std::vector<MatrixInput> matrix_inputs(const Graph& graph, const std::set<std::string>& wanted);

/// The first dimension of the value that has channels of the group; kNone if there is none.
int dim_of_group(const Coupling& coupling, ValueId value, GroupId group);

/// Site::channels along a dimension of the value.
std::vector<int64_t> channels_along(const Coupling& coupling, ValueId value, int dim,
                                    GroupId group);

}  // namespace parsimony
