// What the masked original and the small network read and answer, where a plan cuts inputs or
// outputs of the network, or outputs are fed back.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "parsimony/engines/network.h"
#include "parsimony/graph/graph.h"
#include "parsimony/graph/slice.h"
#include "parsimony/speedup/plan.h"

namespace parsimony {

class Feed {
 public:
  /// @throws ModelError if the plan's inputs and outputs are not those of the graph
  Feed(const Graph& graph, const Plan& plan);

  bool has_states() const { return !states_.empty(); }

  /// Replaces the states among `inputs` by the outputs of the run before. Of an output that is
  /// longer, as of a cache that grows, the end.
  void feed_back(const TensorList& outputs, TensorList& inputs) const;

  /// Sets to zero what the small network's inputs lack.
  void mask(TensorList& inputs) const;

  /// What remains of the original's inputs and outputs in the small network.
  TensorList small_inputs(TensorList inputs) const { return cut(std::move(inputs), inputs_); }
  TensorList small_outputs(TensorList outputs) const { return cut(std::move(outputs), outputs_); }

 private:
  using Cuts = std::vector<std::vector<AxisKeep>>;  // per input or output

  static TensorList cut(TensorList tensors, const Cuts& cuts);

  Cuts inputs_;
  Cuts outputs_;
  std::vector<std::pair<size_t, size_t>> states_;  // numbers of output and input
};

}  // namespace parsimony
