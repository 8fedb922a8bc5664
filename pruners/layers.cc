#include "parsimony/pruners/layers.h"

#include <algorithm>
#include <set>

#include "parsimony/graph/operators/linear_form.h"
#include "parsimony/graph/operators/operands.h"
#include "parsimony/masks/magnitude.h"

namespace parsimony {

namespace {

/// Bounds the search through computed weights; real ones are a few nodes deep.
constexpr size_t kMaxNodes = 64;

bool is_matrix(const Weight& weight) {
  return weight.dims.size() >= 2 && has_magnitude(weight.dtype);
}

}  // namespace

Layers::Layers(const Graph& graph)
    : graph_(graph), made_of_weights_(made_of_weights(graph)), is_layer_(graph.nodes.size()) {
  const auto is_made = [&](ValueId v) { return v == kNone || made_of_weights_[v]; };
  for (const NodeId n : graph.nodes.ids()) {
    const auto& outputs = graph.nodes[n].outputs;
    const bool folds = std::ranges::all_of(outputs, is_made);
    is_layer_[n] = !folds && !weights(n).empty();
  }
}

std::vector<ValueId> Layers::weights(NodeId layer) const {
  const Node& node = graph_.node(layer);
  std::vector<ValueId> open;
  for (const int i : weight_operands(node)) open.push_back(node.inputs[i]);
  std::vector<ValueId> found;
  std::set<ValueId> seen;
  for (size_t i = 0; i < open.size() && seen.size() < kMaxNodes; ++i) {
    if (open[i] == kNone || !made_of_weights_[open[i]]) continue;
    if (!seen.insert(open[i]).second) continue;
    const Value& value = graph_.value(open[i]);
    if (value.weight != kNone) {
      if (is_matrix(graph_.weight(value.weight))) found.push_back(open[i]);
    } else if (value.producer != kNone) {
      const auto& inputs = graph_.node(value.producer).inputs;
      open.insert(open.end(), inputs.begin(), inputs.end());
    }
  }
  return found;
}

std::vector<NodeId> Layers::using_weight_of(NodeId reader) const {
  std::vector<NodeId> open = {reader};
  std::vector<NodeId> found;
  std::set<NodeId> seen;
  for (size_t i = 0; i < open.size() && seen.size() < kMaxNodes; ++i) {
    if (!seen.insert(open[i]).second) continue;
    if (contains(open[i])) {
      found.push_back(open[i]);
      continue;
    }
    for (ValueId output : graph_.node(open[i]).outputs) {
      if (output == kNone || !made_of_weights_[output]) continue;
      for (const Use& use : graph_.value(output).uses) open.push_back(use.node);
    }
  }
  return found;
}

}  // namespace parsimony
