// Fits a recurrent layer of a small network to the dense network's.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "parsimony/api/recovery/fit_sums.h"
#include "parsimony/speedup/small_network.h"

namespace parsimony {

/// Returns the dense network's values that the fit reads: all steps of the layer, its input, and
/// its initial state, where that is computed.
std::vector<ValueId> recurrent_reads(const Graph& dense, const FitLayer& layer);

/// The sums before the gates of a recurrent layer, W x_t + R h_{t-1} + b, fitted to those of the
/// dense network from the small network's x_t and the dense network's h_{t-1} at the kept units.
/// A term that is scaled by another gate before it is added, as in GRU, is fitted by itself.
class RecurrentFit {
 public:
  /// All must outlive this. @param dense  has all steps of the layer as its `answer`
  RecurrentFit(Engine& engine, const Graph& dense, SmallNetwork& small, const FitLayer& layer,
               bool weights);

  /// @param x      of the small network
  /// @param dense  as of recurrent_reads()
  void add(const EngineValue& x, const EngineValues& dense, bool held_out);
  /// Changes the weights if that reduces the error.
  ValidatedFit finish(std::optional<double> ridge, const Together& together,
                      const std::string& reason);

 private:
  /// Matrices [directions, gates · units, n], row-major.
  struct Matrices {
    int64_t rows = 0;
    int64_t columns = 0;
    std::vector<float> numbers;
  };
  struct Weights {
    Matrices input;
    Matrices state;
    Matrices shift;  ///< one column, next to the input; empty if there is none
  };
  /// The networks of sums differ in whether the batch is held out, and in the ranks of their
  /// inputs.
  struct Kind {
    bool held_out = false;
    size_t rank = 0;  ///< of the steps
    auto operator<=>(const Kind&) const = default;
  };
  struct Summing {
    GraphBuilder builder{kSumsOpset};
    std::unique_ptr<Part> part;
  };

  Weights weights_of(const Graph& graph, const Node& node) const;
  Part& part_for(const Kind& kind, const EngineValue& x, const EngineValues& dense);
  ValueId input_rows(GraphBuilder& graph, ValueId x, int64_t columns) const;
  ValueId states_before(GraphBuilder& graph, ValueId steps, size_t rank, ValueId initial) const;
  ValueId times(GraphBuilder& graph, ValueId rows, const Matrices& matrices) const;
  void change(const std::vector<Eigen::MatrixXd>& maps, const std::string& reason);

  Engine& engine_;
  const Graph& dense_graph_;
  SmallNetwork& small_network_;
  const FitLayer layer_;
  const bool fits_weights_;
  const Node& node_;  ///< of the dense network
  int64_t directions_ = 1;
  Weights dense_;  ///< at the kept rows
  Weights small_;
  std::vector<int64_t> kept_state_;
  int64_t together_ = 0;  ///< rows whose input and state are added directly
  int64_t apart_ = 0;     ///< the other rows, which follow
  FitSums both_;
  FitSums input_;
  FitSums state_;
  std::map<Kind, Summing> known_;
};

}  // namespace parsimony
