// The values of a network for many samples, front to back.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "parsimony/graph/graph.h"
#include "parsimony/training/statistics/batches.h"

namespace parsimony::training {

/// Computes values in the order in which they are needed, each node once per batch, and keeps only
/// what later values need. Weights may change in between: what is computed stays as it is.
class Walk {
 public:
  /// @param wanted  all values that will be asked for, as often as they will be: see finish().
  /// `graph` must outlive it.
  Walk(const Graph& graph, std::vector<ValueId> wanted);

  /// Up to `count` more batches, which are brought as far as the others. @returns how many
  int64_t add(const Feed& feed, int64_t count);
  /// Forgets all batches but the first ones.
  void truncate(int64_t batches);
  int64_t batches() const { return static_cast<int64_t>(batches_.size()); }
  /// Of what is kept of all batches.
  int64_t bytes() const;

  /// A value in every batch; one that is undefined for values of nodes that gave none.
  std::vector<at::Tensor> compute(ValueId value);
  /// The same for a value that depends on a node, which stays uncomputed with all behind it.
  std::vector<at::Tensor> behind(NodeId node, ValueId value);
  /// The value is needed once less.
  void finish(ValueId value);

 private:
  using Tensors = IdVector<ValueId, at::Tensor>;

  std::vector<NodeId> needed_for(const std::vector<ValueId>& values) const;
  IdVector<ValueId, bool> read_by(const std::vector<NodeId>& nodes) const;
  Graph part_of(const std::vector<NodeId>& nodes, std::vector<ValueId> outputs) const;
  void run(const std::vector<NodeId>& nodes, const std::vector<ValueId>& extra);

  const Graph& graph_;
  std::vector<ValueId> wanted_;
  IdVector<NodeId, bool> computed_;
  IdVector<ValueId, bool> kept_;  ///< there is a tensor in every batch
  std::vector<Tensors> batches_;
};

}  // namespace parsimony::training
