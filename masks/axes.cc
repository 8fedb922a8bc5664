#include <absl/container/flat_hash_map.h>

#include <algorithm>
#include <map>
#include <random>
#include <tuple>

#include "parsimony/masks/axes_impl.h"

namespace parsimony {
namespace {

using Key = std::tuple<LineId, int64_t, int64_t>;  // line, stride, size

struct Interval {
  int64_t low;
  int64_t high;
};

bool disjoint(const Interval& a, const Interval& b) { return a.high <= b.low || b.high <= a.low; }

bool is_activation(const Graph& graph, ValueId value) {
  return value != kNone && graph.value(value).weight == kNone;
}

bool stands_in(const Factors& factors, ValueId value, int letter) {
  return std::any_of(factors.terms.begin(), factors.terms.end(), [&](const Term& term) {
    return term.value == value &&
           std::find(term.letters.begin(), term.letters.end(), letter) != term.letters.end();
  });
}

/// Does the policy want this letter of this node to be free? Lines say of their letters what they
/// are. Elsewhere heads are the axes that a product of two activations repeats, head dimensions
/// those that it sums over or takes from its second operand.
bool prefers(const Graph& graph, const Node& node, const Factors& factors, int letter,
             Granularity granularity) {
  if (granularity == Granularity::kChannel) return false;
  using notation::LetterRole;
  switch (factors.letters[letter].role) {
    case LetterRole::kHead:
      return granularity == Granularity::kHead;
    case LetterRole::kHeadDim:
    case LetterRole::kValueDim:
    case LetterRole::kRotary:
      return granularity == Granularity::kHeadDim;
    case LetterRole::kGroup:
      return granularity == Granularity::kGroup;
    case LetterRole::kPlain:
      break;
  }
  const bool attention = granularity != Granularity::kGroup && has_trait(node, kPairs) &&
                         node.inputs.size() == 2 && is_activation(graph, node.inputs[0]) &&
                         is_activation(graph, node.inputs[1]);
  if (!attention || !stands_in(factors, node.inputs[1], letter)) return false;
  const bool in_first = stands_in(factors, node.inputs[0], letter);
  const bool in_result = stands_in(factors, node.outputs[0], letter);
  return (granularity == Granularity::kHead) == (in_first && in_result);
}

/// Lines on which a preferred letter stands alone: an axis that has a place there is preferred.
IdVector<LineId, bool> preferred_lines(const Graph& graph, const Lines& lines,
                                       Granularity granularity) {
  IdVector<LineId, bool> preferred(lines.count(), false);
  for (const NodeId n : graph.nodes.ids()) {
    const Factors& factors = lines.factors()[n];
    for (const Term& term : factors.terms) {
      const LineId line = lines.of(term.value, term.dim);
      if (line == kNone || term.letters.size() != 1) continue;
      if (prefers(graph, graph.nodes[n], factors, term.letters[0], granularity)) {
        preferred[line] = true;
      }
    }
  }
  return preferred;
}

/// The axes that a policy may choose among, numbered in order of first appearance.
class Collector {
 public:
  Collector(const Graph& graph, const Lines& lines, Granularity granularity)
      : graph_(graph),
        lines_(lines),
        granularity_(granularity),
        preferred_(preferred_lines(graph, lines, granularity)),
        of_letter_(lines.letters(), kNone) {}

  void visit(NodeId node) {
    const Factors& factors = lines_.factors()[node];
    const bool has_product = std::any_of(factors.terms.begin(), factors.terms.end(),
                                         [](const Term& t) { return t.letters.size() > 1; });
    if (!has_product) return;
    for (const Term& term : factors.terms) {
      const LineId line = lines_.of(term.value, term.dim);
      if (line == kNone || lines_.dead(line)) continue;
      int64_t stride = 1;
      for (size_t i = term.letters.size(); i-- > 0;) {
        const int64_t size = factors.letters[term.letters[i]].size;
        name(node, factors, term.letters[i], {line, stride, size});
        stride *= size;
      }
    }
  }

  IdVector<AxisId, Axis> take(IdVector<LetterId, AxisId>& axis_of_letter) {
    IdVector<AxisId, Axis> axes;
    std::vector<AxisId> number(sets_.count(), kNone);
    const auto axis_of = [&](int set) {
      AxisId& n = number[sets_.find(set)];
      if (n == kNone) n = axes.push_back({});
      return n;
    };
    for (const Key& key : keys_) {
      const auto& [line, stride, size] = key;
      Axis& axis = axes[axis_of(set_of_key_.at(key))];
      axis.size = size;
      axis.places.push_back({line, stride});
      if (preferred_[line]) axis.priority = 1;
    }
    axis_of_letter.assign(of_letter_.size(), kNone);
    for (const LetterId l : of_letter_.ids()) {
      if (of_letter_[l] == kNone) continue;
      axis_of_letter[l] = axis_of(of_letter_[l]);
      Axis& axis = axes[axis_of_letter[l]];
      axis.letters.push_back(l);
      if (wanted_[of_letter_[l]]) axis.priority = 1;
    }
    return axes;
  }

 private:
  void name(NodeId node, const Factors& factors, int own, const Key& key) {
    const LetterId letter = lines_.letter_id(node, own);
    if (lines_.letter_dead(letter)) return;
    const auto [it, fresh] = set_of_key_.try_emplace(key, 0);
    if (fresh) {
      it->second = add_set();
      keys_.push_back(key);
    }
    int& set = of_letter_[letter];
    if (set == kNone) {
      set = add_set();
      wanted_[set] = prefers(graph_, graph_.node(node), factors, own, granularity_);
    }
    sets_.unite(set, it->second);
  }

  int add_set() {
    wanted_.push_back(false);
    return sets_.add();
  }

  const Graph& graph_;
  const Lines& lines_;
  const Granularity granularity_;
  const IdVector<LineId, bool> preferred_;
  UnionFind sets_;
  absl::flat_hash_map<Key, int> set_of_key_;
  std::vector<Key> keys_;
  IdVector<LetterId, int> of_letter_;
  std::vector<bool> wanted_;
};

/// Lines of weights whose layer has a policy of its own; of several the last layer's.
std::map<LineId, Granularity> policies_of_lines(const Graph& graph, const Lines& lines,
                                                const CouplingOptions& options) {
  std::map<LineId, Granularity> policies;
  for (const auto& [node, granularity] : options.of_layers) {
    for (const ValueId value : graph.node(node).inputs) {
      if (value == kNone || graph.value(value).weight == kNone) continue;
      for (const LineId line : lines.value_lines()[value]) {
        if (line != kNone) policies.insert_or_assign(line, granularity);
      }
    }
  }
  return policies;
}

std::vector<AxisId> policy_order(const IdVector<AxisId, Axis>& axes, unsigned shuffle_seed) {
  std::vector<AxisId> order(axes.ids().begin(), axes.ids().end());
  std::stable_sort(order.begin(), order.end(), [&](AxisId a, AxisId b) {
    return std::pair(axes[a].priority, axes[a].size) > std::pair(axes[b].priority, axes[b].size);
  });
  if (shuffle_seed != 0) std::shuffle(order.begin(), order.end(), std::mt19937(shuffle_seed));
  return order;
}

}  // namespace

Axes::Axes(const Graph& graph, const Lines& lines, const CouplingOptions& options) : lines_(lines) {
  collect(graph, options);
  choose(options.shuffle_seed);
}

void Axes::collect(const Graph& graph, const CouplingOptions& options) {
  const auto under = [&](Granularity granularity) {
    Collector collector(graph, lines_, granularity);
    for (const NodeId n : graph.nodes.ids()) collector.visit(n);
    return collector.take(axis_of_letter_);
  };
  axes_ = under(options.granularity);
  if (options.of_layers.empty()) return;
  // The axes are the same under every policy; what differs is which of them are preferred.
  const std::map<LineId, Granularity> own = policies_of_lines(graph, lines_, options);
  std::map<Granularity, IdVector<AxisId, Axis>> others;
  for (const AxisId a : axes_.ids()) {
    const auto place = std::find_if(axes_[a].places.begin(), axes_[a].places.end(),
                                    [&](const Axis::Place& p) { return own.contains(p.line); });
    if (place == axes_[a].places.end()) continue;
    const auto [found, fresh] = others.try_emplace(own.at(place->line));
    if (fresh) found->second = under(found->first);
    axes_[a].priority = found->second[a].priority;
  }
}

/// In order of the policy an axis becomes free unless one of its intervals is disjoint from one
/// that is already taken on the same line, or from another of its own.
void Axes::choose(unsigned shuffle_seed) {
  IdVector<LineId, std::vector<Interval>> taken(lines_.count());
  std::mt19937 refuse(shuffle_seed + 1);
  for (const AxisId a : policy_order(axes_, shuffle_seed)) {
    Axis& axis = axes_[a];
    bool conflict = shuffle_seed != 0 && refuse() % 5 == 0;
    std::vector<std::pair<LineId, Interval>> own;
    for (const Axis::Place& place : axis.places) {
      const Interval interval{place.stride, place.stride * axis.size};
      for (const Interval& other : taken[place.line]) {
        conflict = conflict || disjoint(interval, other);
      }
      for (const auto& [line, other] : own) {
        conflict = conflict || (line == place.line && disjoint(interval, other));
      }
      own.emplace_back(place.line, interval);
    }
    if (conflict) continue;
    axis.free = true;
    for (const auto& [line, interval] : own) taken[line].push_back(interval);
  }
}

}  // namespace parsimony
