#include "parsimony/masks/cost.h"

#include <algorithm>

#include "parsimony/graph/operators/operands.h"

namespace parsimony {

CostModel::CostModel(const Graph& graph, const Facts& facts, const Coupling& coupling)
    : coupling_(coupling) {
  IdVector<WeightId, bool> to_count = parameters(graph);
  for (const ValueId v : graph.values.ids()) {
    const WeightId w = graph.values[v].weight;
    if (w == kNone || !to_count[w]) continue;
    to_count[w] = false;
    std::vector<Factor> factors;
    const Shape& dims = graph.weight(w).dims;
    for (size_t d = 0; d < dims.size(); ++d) {
      factors.push_back({coupling.dim_class_of(v, static_cast<int>(d)), 1, dims[d]});
    }
    add(params_, factors);
  }
  for (const Node& node : graph.nodes) {
    const auto formula = macs_formula(NodeView(graph, node, facts));
    if (!formula) continue;
    for (const auto& product : formula->products) {
      std::vector<Factor> factors;
      for (const auto& f : product) {
        factors.push_back({coupling.dim_class_of(f.value, f.dim), f.stride, f.size});
      }
      add(macs_, factors);
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

int64_t kept_coordinates(const Coupling& coupling, const AxisMasks& masks, DimClassId dim_class,
                         int64_t stride, int64_t size) {
  const auto channels = coupling.channels(dim_class);
  if (stride == 1 && size == static_cast<int64_t>(channels.size())) {
    return std::ranges::count_if(channels, [&](const ChannelId& c) { return masks.keeps(c); });
  }
  std::vector<bool> seen(size, false);
  for (size_t i = 0; i < channels.size(); ++i) {
    const int64_t coordinate = (static_cast<int64_t>(i) / stride) % size;
    if (masks.keeps(channels[i])) seen[coordinate] = true;
  }
  return std::ranges::count(seen, true);
}

int CostModel::factor_id(const Factor& factor) {
  const auto [it, fresh] = ids_.try_emplace({factor.dim_class, factor.stride, factor.size},
                                            static_cast<int>(factors_.size()));
  if (fresh) factors_.push_back(factor);
  return it->second;
}

void CostModel::add(std::vector<Product>& products, const std::vector<Factor>& factors) {
  Product product;
  for (const Factor& factor : factors) {
    if (factor.dim_class == kNone || coupling_.channels(factor.dim_class).empty()) {
      product.constant *= factor.size;
    } else {
      product.factors.push_back(factor_id(factor));
    }
  }
  products.push_back(std::move(product));
}

int64_t CostModel::sum(const std::vector<Product>& products,
                       const std::vector<int64_t>& kept) const {
  int64_t total = 0;
  for (const Product& product : products) {
    int64_t value = product.constant;
    for (const int f : product.factors) value *= kept[f];
    total += value;
  }
  return total;
}

Cost CostModel::under(const AxisMasks& masks) const {
  std::vector<int64_t> kept(factors_.size());
  for (size_t f = 0; f < factors_.size(); ++f) {
    const Factor& factor = factors_[f];
    kept[f] = kept_coordinates(coupling_, masks, factor.dim_class, factor.stride, factor.size);
  }
  return {sum(params_, kept), sum(macs_, kept)};
}

}  // namespace parsimony
