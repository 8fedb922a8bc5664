#include "parsimony/masks/cost.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>
#include <vector>

#include "parsimony/graph/operators/linear_form.h"
#include "parsimony/graph/weights.h"
#include "parsimony/masks/magnitude.h"

namespace parsimony {

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

int ElementCounts::number_of(const Axis& axis) {
  const auto [it, fresh] = numbers_.try_emplace({axis.dim_class, axis.stride, axis.size},
                                                static_cast<int>(axes_.size()));
  if (fresh) axes_.push_back(axis);
  return it->second;
}

int ElementCounts::add(const std::vector<Axis>& axes, int64_t constant, ChannelId of) {
  Product product{constant, {}, of};
  for (const Axis& axis : axes) {
    if (axis.dim_class == kNone || coupling_.channels(axis.dim_class).empty()) {
      product.constant *= axis.size;
    } else {
      product.axes.push_back(number_of(axis));
    }
  }
  products_.push_back(std::move(product));
  return size() - 1;
}

int ElementCounts::add(ValueId value, const Shape& dims, int64_t constant, ChannelId of) {
  std::vector<Axis> axes;
  for (size_t d = 0; d < dims.size(); ++d) {
    axes.push_back({coupling_.dim_class_of(value, static_cast<int>(d)), 1, dims[d]});
  }
  return add(axes, constant, of);
}

std::vector<int64_t> ElementCounts::under(const AxisMasks& masks) const {
  std::vector<int64_t> kept;
  kept.reserve(axes_.size());
  for (const Axis& axis : axes_) {
    kept.push_back(kept_coordinates(coupling_, masks, axis.dim_class, axis.stride, axis.size));
  }
  std::vector<int64_t> counts;
  counts.reserve(products_.size());
  for (const Product& product : products_) {
    int64_t count = masks.keeps(product.of) ? product.constant : 0;
    for (const int axis : product.axes) count *= kept[axis];
    counts.push_back(count);
  }
  return counts;
}

std::vector<std::vector<int64_t>> kept_of(const Coupling& coupling, const AxisMasks& masks,
                                          std::span<const DimClassId> dims) {
  std::vector<std::vector<int64_t>> kept;
  for (const DimClassId dim_class : dims) {
    kept.push_back(dim_class == kNone ? std::vector<int64_t>{}
                                      : kept_indices(coupling, masks, dim_class));
  }
  return kept;
}

namespace {

/// The channels with which nodes leave.
IdVector<NodeId, ChannelId> owners_of_nodes(const Graph& graph, const Coupling& coupling) {
  IdVector<NodeId, ChannelId> owners(graph.nodes.size());
  for (const GroupId g : coupling.groups.ids()) {
    for (const ChannelBranch& own : coupling.groups[g].branches) {
      const ChannelId channel{g, own.channel};
      for (const NodeId n : own.branch.nodes) owners[n] = channel;
      owners[own.branch.add] = channel;
    }
  }
  return owners;
}

/// The channel with which all readers of the value leave.
ChannelId owner_of(const Value& value, const IdVector<NodeId, ChannelId>& owners) {
  if (value.uses.empty()) return {};
  const ChannelId first = owners[value.uses.front().node];
  const auto same = [&](const Use& use) { return owners[use.node] == first; };
  return std::ranges::all_of(value.uses, same) ? first : ChannelId();
}

}  // namespace

StoredElements::StoredElements(const Graph& graph, const Coupling& coupling,
                               const IdVector<WeightId, int64_t>& each, ElementCounts& counts)
    : coupling_(coupling) {
  IdVector<WeightId, std::vector<ValueId>> readings;
  readings.resize(graph.weights.size());
  for (const ValueId v : graph.values.ids()) {
    const WeightId w = graph.values[v].weight;
    if (w == kNone || each[w] == 0) continue;
    const auto same = [&](ValueId other) {
      return coupling.value_dim_classes[other] == coupling.value_dim_classes[v];
    };
    const bool is_there = graph.values[v].is_read() || readings[w].empty();
    if (is_there && std::ranges::none_of(readings[w], same)) readings[w].push_back(v);
  }
  const IdVector<NodeId, ChannelId> owners = owners_of_nodes(graph, coupling);
  for (const WeightId w : readings.ids()) {
    std::vector<Reading> ways;
    for (const ValueId v : readings[w]) {
      const auto& dims = coupling.value_dim_classes[v];
      const ChannelId owner = owner_of(graph.value(v), owners);
      ways.push_back(
          {counts.add(v, graph.weight(w).dims, each[w], owner), {dims.begin(), dims.end()}});
    }
    if (ways.size() == 1) single_.push_back(ways.front().product);
    if (ways.size() > 1) shared_.push_back(std::move(ways));
  }
}

int64_t StoredElements::sum(const std::vector<int64_t>& counts, const AxisMasks& masks) const {
  int64_t sum = 0;
  for (const int product : single_) sum += counts[product];
  for (const std::vector<Reading>& ways : shared_) {
    std::set<std::vector<std::vector<int64_t>>> written;
    for (const Reading& way : ways) {
      if (written.insert(kept_of(coupling_, masks, way.dims)).second) sum += counts[way.product];
    }
  }
  return sum;
}

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
  const IdVector<NodeId, ChannelId> owners = owners_of_nodes(graph, coupling);
  for (const NodeId n : graph.nodes.ids()) {
    const auto formula = macs_formula(NodeView(graph, graph.nodes[n], facts));
    if (!formula) continue;
    for (const auto& product : formula->products) {
      std::vector<ElementCounts::Axis> axes;
      for (const auto& f : product) {
        axes.push_back({coupling.dim_class_of(f.value, f.dim), f.stride, f.size});
      }
      counts_.add(axes, 1, owners[n]);
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
    const bool codes = has_magnitude(graph.weight(value.weight).dtype) && is_weight(graph, value);
    if (codes && !graph.weight(value.weight).dims.empty()) result[value.weight] = true;
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
