// Sums for fitting layers, computed by an engine in its memory.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "parsimony/api/recovery/part.h"
#include "parsimony/api/recovery/row_sums.h"
#include "parsimony/speedup/fit_layers.h"
#include "parsimony/speedup/least_squares.h"

namespace parsimony {

/// Processes that compute the same sums together, each over its own batches.
struct Together {
  int ranks = 1;
  /// Replaces numbers by their sums over the ranks; empty for a single process.
  std::function<void(std::span<double>)> sum = {};
};

/// The role of a batch in the sums.
struct BatchUse {
  bool rectified = false;  ///< where ReLU zeroes the dense target, negative values count as equal
  bool held_out = false;   ///< it only validates the fit
  auto operator<=>(const BatchUse&) const = default;
};

/// Sums for systems of one kind, such as the groups of a layer: over rows x, and over what the
/// answer lacks beside each. Float32 is used within
/// a run of batches, double over runs.
class FitSums {
 public:
  /// @param weights  fits a matrix
  /// @param shift    fits a constant as well
  FitSums(int64_t systems, bool weights, bool shift);

  /// Discards the sums with residuals, which a round changes, and keeps those of x.
  void next_round();
  /// Returns whether the sums of x alone are still incomplete.
  bool reads_rows() const { return !complete_; }

  /// Adds the outputs that `add` reads to a graph. x [systems, rows, columns], or [1, rows,
  /// columns] for all; lack (the residual) and target [systems, rows, out].
  void ask(GraphBuilder& graph, ValueId x, int64_t columns, ValueId lack, ValueId target,
           bool held_out) const;
  /// Adds the results of such a graph. @param next  the index of the first result; advanced past
  /// the last
  void add(const TensorList& results, size_t& next, bool held_out);

  /// Returns, for each system, the sums whose fit is the change of the matrix and its constant
  /// column: [out, in (+ 1)]. Empty if nothing was added.
  const std::vector<SplitSums>& sums(const Together& together);

 private:
  bool weights_;
  bool shift_;
  std::vector<SplitSums> sums_;
  bool complete_ = false;  ///< the products of x have all rows
  bool any_ = false;       ///< something was added in this round
};

/// A layer of the small network that is fitted.
struct LayerFit {
  const FitLayer& layer;
  const Node& node;
  const Weight& weight;        ///< its matrix
  std::vector<int64_t> kept;   ///< channels of the dense output; empty: all
  std::vector<int64_t> steps;  ///< stride of the sampled positions per spatial axis; empty: all
  bool weights = true;         ///< fit the matrix
  bool shift = true;           ///< fit a constant as well
};

/// Values of a layer for a batch.
struct FitBatch {
  EngineValue input;   ///< of the layer
  EngineValue target;  ///< the dense network's output
  EngineValue found;   ///< the small network's output
  BatchUse use;
};

/// The sums of a layer without a state.
class LayerSums {
 public:
  LayerSums(Engine& engine, LayerFit fit);

  void next_round() { sums_.next_round(); }
  /// Adds batches in order, of which several are computed at once.
  void add(std::span<const FitBatch> batches);
  const std::vector<SplitSums>& sums(const Together& together) { return sums_.sums(together); }

 private:
  /// Batches that are summed as one, until they have enough_rows().
  using Run = std::vector<const FitBatch*>;

  /// The properties in which the networks of sums differ.
  struct Kind {
    BatchUse use;
    bool reads_rows = true;
    size_t batches = 1;
    Shape sample;  ///< of the inputs
    auto operator<=>(const Kind&) const = default;
  };

  struct Summing {
    GraphBuilder builder{kSumsOpset};
    std::unique_ptr<Part> part;
  };

  /// Leaves out batches whose outputs differ in shape, or are empty.
  std::vector<Run> runs_of(std::span<const FitBatch> batches) const;
  Part& part_for(const Run& run);
  TensorList sums_of(Part& part, const Run& run) const;
  bool is_comparable(const FitBatch& batch) const;
  int64_t axis_of(const Shape& answer) const;
  int64_t rows_in(const FitBatch& batch) const;
  int64_t bytes_of(const Run& run) const;

  Engine& engine_;
  const LayerFit fit_;
  const RowsOf rows_;
  FitSums sums_;
  std::map<Kind, Summing> known_;
};

}  // namespace parsimony
