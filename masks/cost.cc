#include "parsimony/masks/cost.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "parsimony/graph/operators/operands.h"

namespace parsimony {
namespace {

IdVector<WeightId, int64_t> one_for_each_parameter(const Graph& graph) {
  IdVector<WeightId, int64_t> each;
  for (const bool counts : parameters(graph)) each.push_back(counts ? 1 : 0);
  return each;
}

}  // namespace

CostModel::CostModel(const Graph& graph, const Facts& facts, const Coupling& coupling)
    : counts_(coupling), params_(graph, coupling, one_for_each_parameter(graph), counts_) {
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
  return {params_.sum(counts, masks),
          std::accumulate(counts.begin() + weights_, counts.end(), int64_t{0})};
}

}  // namespace parsimony
