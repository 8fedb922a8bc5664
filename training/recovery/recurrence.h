// Fits a recurrent layer of a small network to the dense network's.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <string>
#include <vector>

#include "parsimony/graph/graph.h"
#include "parsimony/speedup/fit_layers.h"
#include "parsimony/training/recovery/fit_sums.h"

namespace parsimony::training {

/// The sums before the gates of a recurrent layer, W x_t + R h_{t-1} + b, fitted to those of the
/// dense network from the small network's x_t and the dense network's h_{t-1} at the kept units.
/// What is scaled by another gate before it is added, as in GRU, is fitted by itself.
class RecurrentFit {
 public:
  /// @param dense  has all steps of the layer as its `answer`
  RecurrentFit(const Graph& dense, SmallNetwork& small, const FitLayer& layer, bool weights);

  /// @param x      of the small network
  /// @param dense  as of recurrent_reads()
  void add(const at::Tensor& x, const std::vector<at::Tensor>& dense, bool held_out);
  /// Changes the weights if that helps.
  JudgedFit finish(std::optional<double> ridge, const RankGroup* ranks, const std::string& reason);

 private:
  struct Matrices {
    at::Tensor w;  ///< [d, gates·h, i]
    at::Tensor r;  ///< [d, gates·h, h]
    at::Tensor b;  ///< [d, gates·h], beside W x; undefined if there is none
  };

  void change(const std::vector<Eigen::MatrixXd>& maps, const std::string& reason);
  Matrices matrices(const Graph& graph, const Node& node) const;
  at::Tensor input_rows(const at::Tensor& x) const;
  at::Tensor states_before(const at::Tensor& y, const at::Tensor& initial) const;

  const Graph& dense_graph_;
  SmallNetwork& small_network_;
  const FitLayer layer_;
  const bool weights_;
  const Node& node_;  ///< of the dense network
  Matrices dense_;    ///< at the rows that are kept
  Matrices small_;
  std::vector<int64_t> kept_state_;
  int64_t together_ = 0;  ///< rows whose input and state are added directly
  FitSums both_;
  FitSums input_;
  FitSums state_;
};

}  // namespace parsimony::training
