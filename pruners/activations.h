// Statistics of channel activations.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "parsimony/pruners/layers.h"
#include "parsimony/pruners/statistics.h"

namespace parsimony {

/// A value that a network computed: float32, row-major.
struct Activation {
  const float* data = nullptr;
  Shape dims;
};

/// Collects kZeroShare, kMeanActivation, kActivationNorm and kRank. A channel that several layers
/// read accumulates over all of their inputs; a value that two layers read counts once.
///
///     kZeroShare       #{x = 0} / #x
///     kMeanActivation  Σ x / #x
///     kActivationNorm  √(Σ x² / samples)
///     kRank            mean over samples of rank(X), X [h, w] the channel's feature map
///
/// A feature map that is flattened before its readers is observed before flattening. A channel that
/// is not a map has rank 1, or 0 if it is all zero for the sample. Singular values count that
/// exceed max(h, w) · 2⁻²³ of the largest.
///
/// @source Hu 2016 (zero share), Molchanov 2017 (mean), Sun 2023 (norm), Lin 2020 (rank)
class ActivationSums {
 public:
  ActivationSums(const Graph& graph, const Facts& facts, const Coupling& coupling,
                 const std::vector<Site>& sites, std::set<Measure> requested);

  /// Observes a computed value of the network.
  void see(ValueId value, const Activation& x);
  /// The values that it observes.
  std::vector<ValueId> values() const;
  bool observes(ValueId value) const { return views_.contains(value) || maps_.contains(value); }
  bool empty() const { return views_.empty() && maps_.empty(); }
  /// Counts processed samples.
  void add_samples(int64_t count) { samples_ += count; }

  void finish(Statistics& statistics) const;
  int64_t bytes() const;

 private:
  /// One value that contains a group's channels.
  struct View {
    GroupId group;
    int dim;
    std::vector<int64_t> channels;  ///< per index
  };
  struct Sums {
    std::vector<double> count, zeros, sum, squares, maps, rank;
  };

  void add(const View& view, const Activation& x);
  void add_rank(const View& view, const Activation& x);

  const std::set<Measure> requested_;
  std::map<ValueId, std::vector<View>> views_;
  std::map<ValueId, std::vector<View>> maps_;
  PerGroup<Sums> sums_;  ///< per group
  int64_t samples_ = 0;
};

}  // namespace parsimony
