// Second moments of the inputs of weight matrices.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "parsimony/pruners/sites.h"
#include "parsimony/pruners/statistics.h"

namespace parsimony::training {

/// Σ x xᵀ for the matrices of Conv (any stride, dilation, padding and groups), ConvTranspose, Gemm,
/// MatMul and for the input matrices of GRU, LSTM and RNN. Columns are in the order of the stored
/// kernel, [i ..k]. A matrix that several layers share accumulates all their inputs. See
/// matrix_inputs().
class InputMomentSums {
 public:
  /// `wanted` are names of weights.
  InputMomentSums(const Graph& graph, const std::set<std::string>& wanted);

  bool empty() const { return layers_.empty(); }
  /// Observes a computed value, or an input, of the network.
  void see(ValueId value, const at::Tensor& x);

  void finish(Statistics& statistics) const;
  int64_t bytes() const;

 private:
  struct Sums {
    int64_t rows = 0;
    at::Tensor second;  ///< [g, in, in], double
  };

  void add(const MatrixInput& layer, const at::Tensor& x);
  at::Tensor operand(const MatrixInput& layer, const at::Tensor& x) const;

  const Graph& graph_;
  std::map<ValueId, std::vector<MatrixInput>> layers_;
  std::map<std::string, Sums> sums_;
};

}  // namespace parsimony::training
