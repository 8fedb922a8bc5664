// Second moments of the inputs of matrices, summed by an engine.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
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
  void finish(Statistics& statistics) const;
  /// Returns the memory of the sums.
  int64_t bytes() const;

 private:
  struct Kind {
    NodeId node = kNone;
    std::string weight;
    Shape sample;
    bool in_parts = false;
    auto operator<=>(const Kind&) const = default;
  };
  struct Summing {
    GraphBuilder builder{kSumsOpset};
    std::unique_ptr<Part> part;
  };

  int64_t bytes_of(const MatrixInput& input, const Shape& dims, int64_t samples) const;
  void add(const MatrixInput& input, const EngineValues& batches);
  Part& part_for(const MatrixInput& input, const EngineValue& x, bool in_parts);
  void add_sums(const MatrixInput& input, const TensorList& found);

  Engine& engine_;
  const Graph& graph_;
  const std::vector<MatrixInput> inputs_;
  std::set<std::string> shared_;    ///< weights that several layers read
  std::set<NodeId> have_constant_;  ///< layers with one that least squares fits, too
  std::map<Kind, Summing> known_;
  std::map<std::string, InputMoments> moments_;
};

}  // namespace parsimony
