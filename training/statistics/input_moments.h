// Second moments of what weight matrices are multiplied with.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "parsimony/graph/operators/linear_form.h"
#include "parsimony/pruners/statistics.h"

namespace parsimony::training {

/// Σ x xᵀ for the matrices of Conv (any stride, dilation, padding and groups), ConvTranspose, Gemm,
/// MatMul and for the input matrices of GRU, LSTM and RNN. Columns are in the order in which the
/// stored kernel has them, [i ..k]. A matrix that several layers share sees all their inputs.
/// Matrices of other layers, and stacks of matrices, have no entry.
class InputMomentSums {
 public:
  /// `wanted` are names of weights.
  InputMomentSums(const Graph& graph, const std::set<std::string>& wanted);

  /// A value of the network as it is computed, or the network's input.
  void see(ValueId value, const at::Tensor& x);

  void finish(Statistics& statistics) const;
  int64_t bytes() const;

 private:
  struct Layer {
    NodeId node;
    int input;  ///< where the data come in
    const Weight* weight;
    LinearKind kind;
  };
  struct Sums {
    int64_t rows = 0;
    at::Tensor second;  ///< [g, in, in], double
  };

  void add_layer(NodeId node, ValueId matrix);
  void add(const Layer& layer, const at::Tensor& x);
  at::Tensor operand(const Layer& layer, const at::Tensor& x) const;

  const Graph& graph_;
  const IdVector<ValueId, bool> made_of_weights_;
  std::map<ValueId, std::vector<Layer>> layers_;
  std::map<std::string, Sums> sums_;
};

}  // namespace parsimony::training
