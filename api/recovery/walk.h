// The values of a network for many samples, front to back.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "parsimony/api/recovery/part.h"
#include "parsimony/graph/graph.h"

namespace parsimony {

/// Returns up to `most` batches; fewer at the end of the data, and one if the next depends on it.
std::vector<ValueBatch> next_group(const ValueSource& feed, int64_t most);

/// Computes values in the order in which they are needed, each node once per batch, and keeps only
/// what later values need. Weights may change in between: computed values are not recomputed.
class Walk {
 public:
  /// @param target  all values that will be requested, once per request, see finish(). `engine` and
  /// `graph` must outlive this.
  Walk(Engine& engine, const Graph& graph, std::vector<ValueId> target);

  /// Adds up to `count` batches, and computes the values that the others have. @returns how many
  int64_t add(const ValueSource& feed, int64_t count);
  /// Discards all batches except the first ones.
  void truncate(int64_t batches);
  int64_t batches() const { return static_cast<int64_t>(batches_.size()); }
  /// Returns whether each batch depends on the one before it.
  bool is_stream() const { return is_stream_; }
  /// Returns the memory that the kept values of all batches take.
  int64_t bytes() const;

  /// Returns a value for every batch.
  EngineValues compute(ValueId value);
  /// Computes a value that depends on a weight; nodes that depend on the weight stay uncomputed.
  EngineValues after(WeightId weight, ValueId value);
  /// Releases one of the requests of a value.
  void finish(ValueId value);

 private:
  using Values = IdVector<ValueId, EngineValue>;

  /// Returns the nodes that are not computed yet, in order.
  std::vector<NodeId> needed_for(const std::vector<ValueId>& values) const;
  IdVector<ValueId, bool> read_by(const std::vector<NodeId>& nodes) const;
  Graph part_of(const std::vector<NodeId>& nodes, std::vector<ValueId> outputs) const;
  void run(const std::vector<NodeId>& nodes, const std::vector<ValueId>& extra);

  Engine* engine_;
  const Graph* graph_;
  std::vector<ValueId> target_;
  IdVector<NodeId, bool> computed_;
  IdVector<ValueId, bool> kept_;  ///< there is a tensor in every batch
  std::vector<Values> batches_;
  bool is_stream_ = false;
};

/// Every kHeldOutPeriod-th batch is held out of a fit or, of a stream, the last of that many parts.
constexpr int64_t kHeldOutPeriod = 5;

/// The most bytes of activations to keep; where they need more, fewer samples are used.
constexpr int64_t kMostActivations = int64_t{512} << 20;

/// Networks that walk in parallel over the same batches.
class Walks {
 public:
  /// Returns the batches of a walk from the first one on.
  using FeedOf = std::function<ValueSource(size_t walk)>;

  Walks(std::vector<Walk> walks, FeedOf feed_of, int64_t most_bytes = kMostActivations)
      : walks_(std::move(walks)), feed_of_(std::move(feed_of)), most_bytes_(most_bytes) {}

  Walk& operator[](size_t i) { return walks_[i]; }
  int64_t count() const { return walks_.front().batches(); }

  /// Adds batches up to `count`, or as many as there are and fit into memory. @returns whether
  /// there are more than before
  bool grow_to(int64_t count);
  /// Drops the batches that do not fit into memory.
  void shrink();

 private:
  /// Returns how many batches like the present ones fit into memory.
  int64_t fits() const;

  std::vector<Walk> walks_;
  FeedOf feed_of_;
  int64_t most_bytes_;
  bool has_dropped_ = false;      ///< batches that did not fit
  std::optional<int64_t> limit_;  ///< number of batches in the data
};

}  // namespace parsimony
