// Second moments of the inputs of matrices, summed by an engine.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "parsimony/api/recovery/part.h"
#include "parsimony/api/recovery/row_sums.h"
#include "parsimony/engines/engine.h"
#include "parsimony/graph/graph_builder.h"
#include "parsimony/pruners/layers.h"
#include "parsimony/pruners/statistics.h"

namespace parsimony {

/// Sums of a batch are in float32, those over batches in double.
class MomentSums {
 public:
  /// The engine and the graph must outlive this. @param expected  names of matrices
  MomentSums(Engine& engine, const Graph& graph, const std::set<std::string>& expected);

  bool empty() const { return inputs_.empty(); }
  /// Returns the values that see() is to be given.
  std::vector<ValueId> values() const;
  /// Sees a value's batches, in order. @param shared  for the matrices that have several inputs: as
  /// sums are in double, each batch is seen in all inputs before the next
  void see(ValueId value, const EngineValues& batches, bool shared);
  void finish(Statistics& statistics);
  /// Returns the memory of the sums.
  int64_t bytes() const;

 private:
  struct Kind {
    NodeId node = kNone;
    std::string weight;
    Shape sample;
    bool in_parts = false;
    size_t batches = 1;
    auto operator<=>(const Kind&) const = default;
  };
  struct Summing {
    GraphBuilder builder{kSumsOpset};
    std::unique_ptr<Part> part;
  };

  /// Batches whose rows are summed by one product, so that where runs end, and with it the sums, is
  /// the same however many batches come at once.
  struct Unit {
    EngineValues batches;
    int64_t rows = 0;
    bool full = false;
  };

  int64_t bytes_of(const MatrixInput& input, const Shape& dims, int64_t samples) const;
  void add(size_t input, const EngineValues& batches, bool shared);
  void add(const MatrixInput& input, std::span<const Unit> units);
  Part& part_for(const MatrixInput& input, const Unit& unit, bool in_parts);
  void add_sums(const MatrixInput& input, const TensorList& found);

  Engine& engine_;
  const Graph& graph_;
  const std::vector<MatrixInput> inputs_;
  std::set<std::string> shared_;    ///< weights that several layers read
  std::set<NodeId> have_constant_;  ///< layers with one that least squares fits, too
  std::map<Kind, Summing> known_;
  std::vector<std::vector<Unit>> waiting_;  ///< of each input
  std::map<std::string, InputMoments> moments_;
};

}  // namespace parsimony
