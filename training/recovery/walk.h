// The values of a network for many samples, front to back.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "parsimony/graph/graph.h"
#include "parsimony/speedup/small_network.h"
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

  /// A value in every batch.
  std::vector<at::Tensor> compute(ValueId value);
  /// The same for a value that depends on a weight; what is made of that stays uncomputed.
  std::vector<at::Tensor> behind(WeightId weight, ValueId value);
  /// The value is needed once less.
  void finish(ValueId value);

 private:
  using Tensors = IdVector<ValueId, at::Tensor>;

  /// Nodes that are not computed yet, in order.
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

/// Of the activations that are kept. Beyond it fewer samples are used.
constexpr int64_t kMostBytes = int64_t{768} << 20;

/// Networks that walk side by side over the same batches; the last one is the small network, whose
/// inputs may be shorter.
class Walks {
 public:
  Walks(std::vector<Walk> walks, const SmallNetwork& small, const Batches& batches, int64_t size,
        int64_t most_bytes = kMostBytes)
      : walks_(std::move(walks)),
        small_(small),
        batches_(batches),
        size_(size),
        most_bytes_(most_bytes) {}

  Walk& operator[](size_t i) { return walks_[i]; }
  int64_t count() const { return walks_.front().batches(); }

  /// As many batches, or as many as there are and fit into memory. @returns are there more than
  /// before?
  bool grow_to(int64_t count);
  /// To what fits into memory.
  void shrink();

 private:
  /// How many batches like those that are there fit into memory.
  int64_t fits() const;
  Feed feed_of(bool small) const;

  std::vector<Walk> walks_;
  const SmallNetwork& small_;
  const Batches& batches_;
  const int64_t size_;
  const int64_t most_bytes_;
  std::optional<int64_t> limit_;  ///< that the data give
};

}  // namespace parsimony::training
