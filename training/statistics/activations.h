// Statistics of channel activations.
#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <set>
#include <vector>

#include "parsimony/pruners/statistics.h"
#include "parsimony/training/statistics/sites.h"

namespace parsimony::training {

/// Collects kZeroShare, kMeanActivation, kActivationNorm and kRank. A channel that several layers
/// read accumulates over all of their inputs; a value that two layers read counts once.
///
///     kZeroShare       #{x = 0} / #x
///     kMeanActivation  Σ x / #x
///     kActivationNorm  √(Σ x² / samples)
///     kRank            mean over samples of rank(X), X [h, w] the channel's feature map
///
/// A feature map that is flattened before its readers is observed before flattening. A channel that
/// is not a map has rank 1, or 0 if it is all zero for the sample.
///
/// @source Hu 2016 (zero share), Molchanov 2017 (mean), Sun 2023 (norm), Lin 2020 (rank)
class ActivationSums {
 public:
  ActivationSums(const Graph& graph, const Facts& facts, const Coupling& coupling,
                 const std::vector<Site>& sites, std::set<Measure> wanted);

  /// Observes a computed value of the network.
  void see(ValueId value, const at::Tensor& x);
  /// Counts processed samples.
  void add_samples(int64_t count) { samples_ += count; }

  void finish(Statistics& statistics) const;
  int64_t bytes() const;

 private:
  /// One value that contains a group's channels.
  struct View {
    GroupId group;
    int dim;
    at::Tensor channels;  ///< per index
  };
  struct Sums {
    std::vector<double> count, zeros, sum, squares, maps, rank;
  };

  void add(const View& view, const at::Tensor& x);
  void add_rank(const View& view, const at::Tensor& x);

  const std::set<Measure> wanted_;
  std::map<ValueId, std::vector<View>> views_;
  std::map<ValueId, std::vector<View>> maps_;
  PerGroup<Sums> sums_;  ///< per group
  int64_t samples_ = 0;
};

}  // namespace parsimony::training
