// Facts about a graph to which nodes are still being added.
#pragma once

#include <memory>

#include "parsimony/graph/infer.h"

namespace parsimony {

/// The facts of `infer`, kept up with the graph: a node is visited once, however often they are
/// asked for in between.
class GrowingFacts {
 public:
  /// Both are read again at every call of `now`: inputs, too, may be added to them.
  GrowingFacts(const Graph& graph, const Probe& probe);
  ~GrowingFacts();
  GrowingFacts(const GrowingFacts&) = delete;
  GrowingFacts& operator=(const GrowingFacts&) = delete;

  /// `infer(graph, probe)`. @throws ShapeError
  const Facts& now();
  /// Returns the facts as far as the value: nodes that were added since it need not be visited.
  const Facts& about(ValueId value);
  /// `now` for the last time.
  Facts last() &&;

  /// These and all behind them are about to be removed, or are to be visited again, because a node
  /// has become the owner of their body.
  void forget(NodeId node, ValueId value);

  /// After a ShapeError: the sizes of the operands that do not fit.
  const std::vector<int64_t>& sizes_at_fault() const { return sizes_at_fault_; }

 private:
  class Inference;
  struct Turns;

  const Graph& graph_;
  const Probe& probe_;
  bool may_assume_ = true;
  std::vector<int64_t> sizes_at_fault_;
  std::unique_ptr<Turns> turns_;
  std::unique_ptr<Inference> inference_;  ///< null before the first call, and where it begins anew
};

}  // namespace parsimony
