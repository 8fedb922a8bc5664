// Sums with which layers are fitted, made by an engine where its values are.
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

/// Processes that do the same together, each with batches of its own.
struct Together {
  int ranks = 1;
  /// Replaces numbers by their sums over the ranks; empty: there is but one.
  std::function<void(std::span<double>)> sum = {};
};

/// The role of a batch in the sums.
struct BatchUse {
  bool rectified = false;  ///< where Relu zeroes the dense target, any negative value is as good
  bool held_out = false;   ///< it only judges the fit
  auto operator<=>(const BatchUse&) const = default;
};

/// Sums for systems of one kind, such as the groups of a layer: over rows x, and over what the
/// answer lacks beside each. Float32 is used within a batch, double over batches.
class FitSums {
 public:
  /// @param weights  fits a matrix
  /// @param shift    fits a constant beside it
  FitSums(int64_t systems, bool weights, bool shift);

  /// Forgets what is lacking, which a round changes; the rows x stay.
  void next_round();
  /// Do the sums lack those of x alone?
  bool reads_rows() const { return !complete_; }

  /// Adds what `add` takes to a graph's outputs. x [systems, rows, in], or [1, rows, in] for all;
  /// lack and target [systems, rows, out].
  void ask(GraphBuilder& graph, ValueId x, ValueId lack, ValueId target, bool held_out) const;
  /// @param next  the first of these; moves behind the last one
  void add(const TensorList& results, size_t& next, bool held_out);

  /// For each system those whose fit is the change of the matrix, and of the constant behind it:
  /// [out, in (+ 1)]. Empty if nothing was added.
  std::vector<SplitSums> sums(const Together& together);

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
  std::vector<int64_t> kept;   ///< of the dense answer's channels; empty: all
  std::vector<int64_t> steps;  ///< by spatial axis: every so many positions; empty: all
  bool weights = true;         ///< fit the matrix
  bool shift = true;           ///< fit a constant beside it
};

/// The sums of a layer without a state.
class LayerSums {
 public:
  LayerSums(Engine& engine, LayerFit fit);

  void next_round() { sums_.next_round(); }
  /// @param input   of the layer
  /// @param target  the dense network's answer
  /// @param found   the small network's
  void add(const EngineValue& input, const EngineValue& target, const EngineValue& found,
           BatchUse use);
  std::vector<SplitSums> sums(const Together& together) { return sums_.sums(together); }

 private:
  /// The properties in which the networks of sums differ.
  struct Kind {
    BatchUse use;
    bool reads_rows = true;
    Shape sample;  ///< of the inputs
    auto operator<=>(const Kind&) const = default;
  };

  struct Summing {
    GraphBuilder builder{kSumsOpset};
    std::unique_ptr<Part> part;
  };

  Part& part_for(const Kind& kind, const EngineValue& input, const EngineValue& target,
                 const EngineValue& found, int64_t axis);

  Engine& engine_;
  const LayerFit fit_;
  const RowsOf rows_;
  FitSums sums_;
  std::map<Kind, Summing> known_;
};

/// Copies in host memory.
TensorList on_host(const EngineValues& values);

}  // namespace parsimony
