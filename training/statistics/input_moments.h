// Second moments of the inputs of weight matrices.
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
/// MatMul and for the input matrices of GRU, LSTM and RNN. Columns are in the order of the stored
/// kernel, [i ..k]. A matrix that several layers share accumulates all their inputs. Matrices of
/// other layers, and stacked matrices, have no entry.
class InputMomentSums {
 public:
  /// `wanted` are names of weights.
  InputMomentSums(const Graph& graph, const std::set<std::string>& wanted);

  /// Observes a computed value, or an input, of the network.
  void see(ValueId value, const at::Tensor& x);

  void finish(Statistics& statistics) const;
  int64_t bytes() const;

 private:
  struct Layer {
    NodeId node;
    int input;  ///< index of the data operand
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
