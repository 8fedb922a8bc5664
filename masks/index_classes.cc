#include <absl/container/flat_hash_map.h>

#include <algorithm>
#include <map>
#include <random>
#include <tuple>

#include "parsimony/base/ranges.h"
#include "parsimony/masks/coupling_impl.h"

namespace parsimony {
namespace {

using Key = std::tuple<DimClassId, int64_t, int64_t>;  // dim class, stride, size

struct Interval {
  int64_t low;
  int64_t high;
};

bool disjoint(const Interval& a, const Interval& b) { return a.high <= b.low || b.high <= a.low; }

bool is_activation(const Graph& graph, ValueId value) {
  return value != kNone && graph.value(value).weight == kNone;
}

bool stands_in(const Factors& factors, ValueId value, int label) {
  return std::ranges::any_of(factors.terms, [&](const Term& term) {
    return term.value == value && contains(term.labels, label);
  });
}

/// Does the granularity policy prefer this label of this node to be free? The notation declares the
/// roles of labels. Elsewhere heads are the batch axes of a product of two activations, and head
/// dimensions are the axes that it contracts or takes from its second operand.
bool prefers(const Graph& graph, const Node& node, const Factors& factors, int label,
             Granularity granularity) {
  if (granularity == Granularity::kChannel) return false;
  using notation::LabelRole;
  switch (factors.labels[label].role) {
    case LabelRole::kHead:
      return granularity == Granularity::kHead;
    case LabelRole::kHeadDim:
    case LabelRole::kValueDim:
    case LabelRole::kRotary:
      return granularity == Granularity::kHeadDim;
    case LabelRole::kGroup:
      return granularity == Granularity::kGroup;
    case LabelRole::kExpert:
      return granularity == Granularity::kExpert;
    case LabelRole::kPlain:
      break;
  }
  const bool of_heads = granularity == Granularity::kHead || granularity == Granularity::kHeadDim;
  const bool attention = of_heads && has_trait(node, kPairs) && node.inputs.size() == 2 &&
                         is_activation(graph, node.inputs[0]) &&
                         is_activation(graph, node.inputs[1]);
  if (!attention || !stands_in(factors, node.inputs[1], label)) return false;
  const bool in_first = stands_in(factors, node.inputs[0], label);
  const bool in_result = stands_in(factors, node.outputs[0], label);
  return (granularity == Granularity::kHead) == (in_first && in_result);
}

/// Dim classes in which a preferred label appears alone: an axis with a position there is
/// preferred.
IdVector<DimClassId, bool> preferred_dim_classes(const Graph& graph, const DimClasses& dim_classes,
                                                 Granularity granularity) {
  IdVector<DimClassId, bool> preferred(dim_classes.count(), false);
  for (const NodeId n : graph.nodes.ids()) {
    const Factors& factors = dim_classes.factors()[n];
    for (const Term& term : factors.terms) {
      const DimClassId dim_class = dim_classes.of(term.value, term.dim);
      if (dim_class == kNone || term.labels.size() != 1) continue;
      if (prefers(graph, graph.nodes[n], factors, term.labels[0], granularity)) {
        preferred[dim_class] = true;
      }
    }
  }
  return preferred;
}

/// The axes that a policy may choose among, numbered in order of first appearance.
class Collector {
 public:
  Collector(const Graph& graph, const DimClasses& dim_classes, Granularity granularity)
      : graph_(graph),
        dim_classes_(dim_classes),
        granularity_(granularity),
        preferred_(preferred_dim_classes(graph, dim_classes, granularity)),
        of_label_(dim_classes.labels(), kNone) {}

  void visit(NodeId node) {
    const Factors& factors = dim_classes_.factors()[node];
    const bool has_product =
        std::ranges::any_of(factors.terms, [](const Term& t) { return t.labels.size() > 1; });
    if (!has_product) return;
    for (const Term& term : factors.terms) {
      const DimClassId dim_class = dim_classes_.of(term.value, term.dim);
      if (dim_class == kNone || dim_classes_.wholly_pinned(dim_class)) continue;
      int64_t stride = 1;
      for (size_t i = term.labels.size(); i-- > 0;) {
        const int64_t size = factors.labels[term.labels[i]].size;
        name(node, factors, term.labels[i], {dim_class, stride, size});
        stride *= size;
      }
    }
  }

  IdVector<AxisId, Axis> take(IdVector<LabelId, AxisId>& axis_of_label) {
    IdVector<AxisId, Axis> axes;
    std::vector<AxisId> number(sets_.count(), kNone);
    const auto axis_of = [&](int set) {
      AxisId& n = number[sets_.find(set)];
      if (n == kNone) n = axes.push_back({});
      return n;
    };
    for (const Key& key : keys_) {
      const auto& [dim_class, stride, size] = key;
      Axis& axis = axes[axis_of(set_of_key_.at(key))];
      axis.size = size;
      axis.positions.push_back({dim_class, stride});
      if (preferred_[dim_class]) axis.priority = 1;
    }
    axis_of_label.assign(of_label_.size(), kNone);
    for (const LabelId l : of_label_.ids()) {
      if (of_label_[l] == kNone) continue;
      axis_of_label[l] = axis_of(of_label_[l]);
      Axis& axis = axes[axis_of_label[l]];
      axis.labels.push_back(l);
      if (expected_[of_label_[l]]) axis.priority = 1;
    }
    return axes;
  }

 private:
  void name(NodeId node, const Factors& factors, int own, const Key& key) {
    const LabelId label = dim_classes_.label_id(node, own);
    if (dim_classes_.label_pinned(label)) return;
    const auto [it, fresh] = set_of_key_.try_emplace(key, 0);
    if (fresh) {
      it->second = add_set();
      keys_.push_back(key);
    }
    int& set = of_label_[label];
    if (set == kNone) {
      set = add_set();
      expected_[set] = prefers(graph_, graph_.node(node), factors, own, granularity_);
    }
    sets_.unite(set, it->second);
  }

  int add_set() {
    expected_.push_back(false);
    return sets_.add();
  }

  const Graph& graph_;
  const DimClasses& dim_classes_;
  const Granularity granularity_;
  const IdVector<DimClassId, bool> preferred_;
  UnionFind sets_;
  absl::flat_hash_map<Key, int> set_of_key_;
  std::vector<Key> keys_;
  IdVector<LabelId, int> of_label_;
  std::vector<bool> expected_;
};

/// Dim classes of weights whose layer has its own policy; of several, the last layer's.
std::map<DimClassId, Granularity> policies_of_dim_classes(const Graph& graph,
                                                          const DimClasses& dim_classes,
                                                          const CouplingOptions& options) {
  std::map<DimClassId, Granularity> policies;
  for (const auto& [node, granularity] : options.of_layers) {
    for (const ValueId value : graph.node(node).inputs) {
      if (value == kNone || graph.value(value).weight == kNone) continue;
      for (const DimClassId dim_class : dim_classes.value_dim_classes()[value]) {
        if (dim_class != kNone) policies.insert_or_assign(dim_class, granularity);
      }
    }
  }
  return policies;
}

std::vector<AxisId> policy_order(const IdVector<AxisId, Axis>& axes, unsigned shuffle_seed) {
  std::vector<AxisId> order(axes.ids().begin(), axes.ids().end());
  std::ranges::stable_sort(order, [&](AxisId a, AxisId b) {
    return std::pair(axes[a].priority, axes[a].size) > std::pair(axes[b].priority, axes[b].size);
  });
  if (shuffle_seed != 0) std::shuffle(order.begin(), order.end(), std::mt19937(shuffle_seed));
  return order;
}

}  // namespace

Axes::Axes(const Graph& graph, const DimClasses& dim_classes, const CouplingOptions& options)
    : dim_classes_(dim_classes) {
  collect(graph, options);
  choose(options.shuffle_seed);
}

void Axes::collect(const Graph& graph, const CouplingOptions& options) {
  const auto under = [&](Granularity granularity) {
    Collector collector(graph, dim_classes_, granularity);
    for (const NodeId n : graph.nodes.ids()) collector.visit(n);
    return collector.take(axis_of_label_);
  };
  axes_ = under(options.granularity);
  if (options.of_layers.empty()) return;
  // The axes are the same under every policy; what differs is which of them are preferred.
  const std::map<DimClassId, Granularity> own =
      policies_of_dim_classes(graph, dim_classes_, options);
  std::map<Granularity, IdVector<AxisId, Axis>> others;
  for (const AxisId a : axes_.ids()) {
    const auto position = std::ranges::find_if(
        axes_[a].positions, [&](const Axis::Position& p) { return own.contains(p.dim_class); });
    if (position == axes_[a].positions.end()) continue;
    const auto [found, fresh] = others.try_emplace(own.at(position->dim_class));
    if (fresh) found->second = under(found->first);
    axes_[a].priority = found->second[a].priority;
  }
}

/// In the order of the policy, an axis becomes free unless one of its intervals is disjoint from
/// one already taken in the same dim class, or from another of its own.
void Axes::choose(unsigned shuffle_seed) {
  IdVector<DimClassId, std::vector<Interval>> taken(dim_classes_.count());
  std::mt19937 refuse(shuffle_seed + 1);
  for (const AxisId a : policy_order(axes_, shuffle_seed)) {
    Axis& axis = axes_[a];
    bool conflict = shuffle_seed != 0 && refuse() % 5 == 0;
    std::vector<std::pair<DimClassId, Interval>> own;
    for (const Axis::Position& position : axis.positions) {
      const Interval interval{position.stride, position.stride * axis.size};
      for (const Interval& other : taken[position.dim_class]) {
        conflict = conflict || disjoint(interval, other);
      }
      for (const auto& [dim_class, other] : own) {
        conflict = conflict || (dim_class == position.dim_class && disjoint(interval, other));
      }
      own.emplace_back(position.dim_class, interval);
    }
    if (conflict) continue;
    axis.free = true;
    for (const auto& [dim_class, interval] : own) taken[dim_class].push_back(interval);
  }
}

namespace {

// Reasons of our own are numbered downwards from here, those of the dim classes upwards from 0.
constexpr int kRefused = -2;

}  // namespace

IndexClasses::IndexClasses(const DimClasses& dim_classes, const Axes& axes)
    : dim_classes_(dim_classes), axes_(axes) {
  number_elements();
  unite_products();
  unite_maps();
  mark_pins();
}

void IndexClasses::number_elements() {
  int64_t total = 0;
  for (const DimClassId dim_class : dim_classes_.all()) {
    dim_class_begin_.push_back(total);
    total += length(dim_class);
  }
  dim_class_begin_.push_back(total);
  for (const Axis& axis : axes_.all()) {
    coordinate_begin_.push_back(total);
    total += axis.free ? axis.size : 0;
  }
  sets_ = UnionFind(total);
  pin_.assign(total, kNone);
}

/// Index i of a dim class belongs to coordinate (i / stride) % size of each free axis on it.
void IndexClasses::unite_products() {
  for (const AxisId a : axes_.all().ids()) {
    const Axis& axis = axes_.all()[a];
    if (!axis.free) continue;
    for (const Axis::Position& position : axis.positions) {
      for (int64_t i = 0; i < length(position.dim_class); ++i) {
        const int64_t coordinate = (i / position.stride) % axis.size;
        sets_.unite(element(position.dim_class, i),
                    static_cast<int32_t>(coordinate_begin_[a] + coordinate));
      }
    }
  }
}

void IndexClasses::unite_maps() {
  for (const DimClassId dim_class : dim_classes_.all()) {
    if (dim_classes_.wholly_pinned(dim_class)) continue;
    for (const ClassSegment& run : dim_classes_.segments(dim_class)) {
      // Each map is stored in both of its dim classes; one of them is enough.
      if (run.other == kNone || run.other < dim_class || dim_classes_.wholly_pinned(run.other))
        continue;
      for (int64_t i = 0; i < run.count; ++i) {
        sets_.unite(element(dim_class, run.begin + i), element(run.other, run.other_begin + i));
      }
    }
  }
}

/// Pins a class; the first reason stays.
void IndexClasses::pin(int32_t element, int reason) {
  int& at = pin_[sets_.find(element)];
  if (at == kNone) at = reason;
}

void IndexClasses::mark_pins() {
  for (const DimClassId dim_class : dim_classes_.all()) {
    const int64_t n = length(dim_class);
    for (int64_t i = 0; i < n; ++i) {
      if (const int reason = dim_classes_.pinned(dim_class, i); reason != kNone)
        pin(element(dim_class, i), reason);
    }
    if (n == 0) continue;
    for (const PlacedTerm& placed : dim_classes_.terms(dim_class)) {
      const auto is_free = [&](int l) { return axes_.free(dim_classes_.label_id(placed.node, l)); };
      const auto& labels = placed.term->labels;
      if (std::ranges::any_of(labels, is_free)) continue;
      const int reason = kRefused - static_cast<int>(refused_.size());
      refused_.push_back({placed.node, false, "competes with another axis of this dimension"});
      for (int64_t i = 0; i < n; ++i) pin(element(dim_class, i), reason);
      break;
    }
  }
}

const Reason& IndexClasses::reason(int id) const {
  return id <= kRefused ? refused_[kRefused - id] : dim_classes_.reason(id);
}

std::vector<NodeId> IndexClasses::first_occurrences(const std::vector<Occurrence>& events) {
  std::vector<NodeId> nodes(sets_.count(), kNone);
  const auto mark = [&](int32_t root, NodeId node) {
    NodeId& at = nodes[root];
    if (at == kNone) at = node;
  };
  for (const Occurrence& event : events) {
    const AxisId axis = axes_.axis_of(event.label);
    if (event.dim_class != kNone) {
      for (int64_t i = 0; i < length(event.dim_class); ++i)
        mark(root(event.dim_class, i), event.node);
    } else if (axis != kNone) {
      const int64_t begin = coordinate_begin_[axis];
      for (int64_t c = 0; c < axes_.all()[axis].size; ++c) {
        mark(root(begin + c), event.node);
      }
    }
  }
  return nodes;
}

}  // namespace parsimony
