// Equal constants that an exporter merged, mostly zero biases, would couple unrelated layers. In
// densenet121 un-sharing them turns 31 groups into 120.
//
//   bn1(x, w, zeros), bn2(y, v, zeros)   =>   bn1(x, w, zeros'), bn2(y, v, zeros'')
//
// Matrices stay tied, since their sharing is intended, and so do uses by irregular operators: gate
// biases behind a Slice would be separated.
#include <algorithm>
#include <utility>

#include "parsimony/graph/graph.h"
#include "parsimony/graph/operators/factor.h"
#include "parsimony/graph/operators/operands.h"

namespace parsimony {
namespace {

bool is_vector(const Shape& dims) {
  const auto longer = [](int64_t dim) { return dim > 1; };
  const auto empty = [](int64_t dim) { return dim < 1; };
  return std::ranges::none_of(dims, empty) && std::ranges::count_if(dims, longer) == 1;
}

bool is_regular(const Graph& graph, const Use& use) {
  const Node& node = graph.node(use.node);
  if (node.calls > 0) return false;  // its operands are those of the call
  return !schema_of(node).line.empty();
}

void separate(Graph& graph, ValueId id) {
  const std::vector<Use> uses = graph.value(id).uses;
  std::vector<Use> regular;
  std::vector<Use> irregular;
  for (const Use& use : uses) (is_regular(graph, use) ? regular : irregular).push_back(use);
  if (regular.empty()) return;

  bool original_is_free =
      irregular.empty() && !graph.value(id).is_output && !graph.value(id).captured;
  graph.value(id).uses = std::move(irregular);
  for (const Use& use : regular) {
    if (original_is_free) {
      original_is_free = false;
      graph.value(id).shared_copy = true;
      graph.value(id).uses = {use};
      continue;
    }
    Value copy = graph.value(id);
    copy.is_output = false;
    copy.captured = false;
    copy.shared_copy = true;
    copy.uses = {use};
    graph.nodes[use.node].inputs[use.input] = graph.values.push_back(std::move(copy));
  }
}

}  // namespace

void separate_shared_vectors(Graph& graph) {
  // Counted per weight: several values may show the same one, for instance behind an Identity.
  IdVector<WeightId, size_t> uses(graph.weights.size(), 0);
  for (const Value& value : graph.values) {
    if (value.weight != kNone) uses[value.weight] += value.uses.size();
  }
  for (const ValueId v : graph.values.ids()) {  // existing ones; copies need not be checked
    const WeightId id = graph.value(v).weight;
    if (id == kNone || uses[id] < 2) continue;
    const Weight& weight = graph.weight(id);
    if (is_vector(weight.dims) && is_weight(graph, graph.value(v))) separate(graph, v);
  }
}

}  // namespace parsimony
