#include "parsimony/masks/cost.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "parsimony/graph/operators/operands.h"

namespace parsimony {

CostModel::CostModel(const Graph& graph, const Facts& facts, const Coupling& coupling)
    : counts_(coupling) {
  IdVector<WeightId, bool> to_count = parameters(graph);
  for (const ValueId v : graph.values.ids()) {
    const WeightId w = graph.values[v].weight;
    if (w == kNone || !to_count[w]) continue;
    to_count[w] = false;
    counts_.add(v, graph.weight(w).dims);
  }
  weights_ = counts_.size();
  for (const Node& node : graph.nodes) {
    const auto formula = macs_formula(NodeView(graph, node, facts));
    if (!formula) continue;
    for (const auto& product : formula->products) {
      std::vector<ElementCounts::Axis> axes;
      for (const auto& f : product) {
        axes.push_back({coupling.dim_class_of(f.value, f.dim), f.stride, f.size});
      }
      counts_.add(axes);
    }
  }
  dense_ = under(AxisMasks::all_kept(coupling));
}

IdVector<WeightId, bool> parameters(const Graph& graph) {
  IdVector<WeightId, bool> result;
  for (const Weight& weight : graph.weights) {
    result.push_back(!weight.dims.empty() &&
                     (is_floating(weight.dtype) || is_small_integer(weight.dtype)));
  }
  for (const Value& value : graph.values) {
    if (value.weight == kNone || value.uses.empty()) continue;
    const bool statistics = std::ranges::all_of(
        value.uses, [&](const Use& use) { return is_statistic(graph.node(use.node), use.input); });
    if (statistics) result[value.weight] = false;
  }
  return result;
}

Cost CostModel::under(const AxisMasks& masks) const {
  const std::vector<int64_t> counts = counts_.under(masks);
  const auto weights_end = counts.begin() + weights_;
  return {std::accumulate(counts.begin(), weights_end, int64_t{0}),
          std::accumulate(weights_end, counts.end(), int64_t{0})};
}

}  // namespace parsimony
