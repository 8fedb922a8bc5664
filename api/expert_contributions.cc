#include "parsimony/api/expert_contributions.h"

#include <algorithm>
#include <limits>
#include <set>
#include <span>
#include <utility>

#include "parsimony/api/network_error.h"
#include "parsimony/base/errors.h"
#include "parsimony/base/ranges.h"
#include "parsimony/graph/operators/factor.h"
#include "parsimony/graph/operators/node_view.h"
#include "parsimony/graph/weights.h"
#include "parsimony/pruners/layers.h"
#include "parsimony/speedup/fit_layers.h"

namespace parsimony {
namespace {

using ValueFlags = IdVector<ValueId, bool>;

constexpr NodeId kNever(std::numeric_limits<int32_t>::max());

/// The part of a network in which the experts of a group compute.
struct ExpertPart {
  std::vector<ValueId> weights;   ///< made of weights alone, as data meet them
  std::vector<NodeId> nodes;      ///< that make them, and from them to the sum
  std::vector<ValueId> inputs;    ///< what these read from elsewhere
  ValueId sum = kNone;            ///< all that experts and gates give passes through it
  std::vector<int64_t> features;  ///< its axes that are axes of the weights
};

class ExpertPartFinder {
 public:
  ExpertPartFinder(const Graph& graph, const Facts& facts, const Coupling& coupling)
      : graph_(graph),
        facts_(facts),
        coupling_(coupling),
        from_weights_(depends_on_weights_only(graph)),
        real_(graph.values.size(), false) {
    for (const ValueId v : graph.values.ids()) {
      const WeightId weight = graph.value(v).weight;
      real_[v] = weight != kNone && is_floating(graph.weight(weight).dtype);
    }
    real_ = made_of(std::move(real_));
  }

  /// @throws UnsupportedError, with the reason, if what the experts add cannot be told
  ExpertPart of(GroupId group) {
    ExpertPart part;
    const std::vector<ValueId> scores = scores_of(group);
    part.weights = weights_of(group, scores);
    part.sum = sum_of(part.weights, scores);
    add_nodes(part);
    part.features = features_of(part);
    return part;
  }

 private:
  /// Adds the values that are computed from these; sizes are not.
  ValueFlags made_of(ValueFlags made) const {
    for (const Node& node : graph_.nodes) {
      bool any = false;
      for_each_read(graph_, node, [&](ValueId v) { any = any || made[v]; });
      if (!any || has_trait(node, kReadsSizes)) continue;
      for (const ValueId v : node.outputs) {
        if (v != kNone) made[v] = true;
      }
    }
    return made;
  }
  ValueFlags only(const std::vector<ValueId>& values) const {
    ValueFlags result(graph_.values.size(), false);
    for (const ValueId v : values) result[v] = true;
    return result;
  }

  /// Computed numbers among which experts are chosen.
  std::vector<ValueId> scores_of(GroupId group) const {
    std::vector<ValueId> scores;
    for (const NodeId n : coupling_.ties(group)) {
      const Factors factors = factor(NodeView(graph_, graph_.node(n), facts_));
      const auto is_expert = [&](int label) {
        return factors.labels[label].role == notation::LabelRole::kExpert;
      };
      for (const Term& term : factors.terms) {
        if (std::ranges::any_of(term.labels, is_expert) && !from_weights_[term.value] &&
            dim_of_group(coupling_, term.value, group) != kNone) {
          scores.push_back(term.value);
        }
      }
    }
    return scores;
  }

  /// Floating-point weights of experts, without those that give the scores.
  std::vector<ValueId> weights_of(GroupId group, const std::vector<ValueId>& scores) const {
    ValueFlags of_router(graph_.values.size(), false);
    for (const NodeId n : nodes_for(graph_, scores)) {
      for_each_read(graph_, graph_.node(n), [&](ValueId v) { of_router[v] = true; });
    }
    const auto is_data = [&](ValueId v) { return v != kNone && !from_weights_[v]; };
    const auto meets_data = [&](const Use& use) {
      return std::ranges::any_of(graph_.node(use.node).outputs, is_data);
    };
    std::vector<ValueId> weights;
    for (const ValueId v : graph_.values.ids()) {
      if (from_weights_[v] && real_[v] && !of_router[v] &&
          std::ranges::any_of(graph_.value(v).uses, meets_data) &&
          dim_of_group(coupling_, v, group) != kNone) {
        weights.push_back(v);
      }
    }
    if (weights.empty()) {
      throw UnsupportedError(
          "no floating-point weights of theirs are read behind the scores alone");
    }
    return weights;
  }

  /// The last node that reads the value and computes on what the experts give.
  NodeId last_reader(ValueId v) const {
    NodeId last = kNone;
    for (const Use& use : graph_.value(v).uses) {
      if (!computes_[use.node]) continue;
      const Node& node = graph_.node(use.node);
      if (node.body != kNone || node.has_subgraph) return kNever;
      last = std::max(last, use.node);
    }
    return last;
  }

  /// The nearest value through which all passes that these weights and scores give.
  ValueId sum_of(const std::vector<ValueId>& weights, const std::vector<ValueId>& scores) {
    computed_ = made_of(only(weights));
    computes_ = IdVector<NodeId, bool>(graph_.nodes.size(), false);
    const auto is_computed = [&](ValueId v) { return v != kNone && computed_[v]; };
    for (const ValueId v : computed_.ids()) computed_[v] = computed_[v] && !from_weights_[v];
    for (const NodeId n : graph_.nodes.ids()) {
      computes_[n] = std::ranges::any_of(graph_.node(n).outputs, is_computed);
    }
    const ValueFlags chosen = made_of(only(scores));
    NodeId open = kNone;  // the last node that reads what was found so far
    for (const ValueId v : weights) open = std::max(open, last_reader(v));
    for (const ValueId v : chosen.ids()) {
      if (chosen[v] && !computed_[v]) open = std::max(open, last_reader(v));
    }
    for (const NodeId n : graph_.nodes.ids()) {
      const Node& node = graph_.node(n);
      if (!computes_[n] || node.body != kNone) continue;
      if (open <= n && std::ranges::count_if(node.outputs, is_computed) == 1) {
        return *std::ranges::find_if(node.outputs, is_computed);
      }
      for (const ValueId v : node.outputs) {
        if (!is_computed(v)) continue;
        const Value& value = graph_.value(v);
        open = std::max(open, value.is_output || value.captured ? kNever : last_reader(v));
      }
    }
    throw UnsupportedError(
        "there is no value through which all passes that they and their gates give");
  }

  void add_nodes(ExpertPart& part) const {
    ValueFlags known(graph_.values.size(), false);
    for (const ValueId v : known.ids()) known[v] = !computed_[v] && !from_weights_[v];
    part.nodes = nodes_for(graph_, {part.sum}, {}, known);
    for (const NodeId n : part.nodes) {
      for (const ValueId v : graph_.node(n).inputs) {
        if (v != kNone && known[v] && !contains(part.inputs, v)) part.inputs.push_back(v);
      }
    }
  }

  /// Axes of the sum that come from axes of the weights, and not from what data have.
  std::vector<int64_t> features_of(const ExpertPart& part) const {
    std::set<std::pair<ValueId, int>> found;
    for (const ValueId v : part.weights) {
      const auto& classes = coupling_.value_dim_classes[v];
      for (size_t d = 0; d < classes.size(); ++d) {
        if (classes[d] != kNone) found.emplace(v, d);
      }
    }
    for (const NodeId n : part.nodes) {
      const Factors factors = factor(NodeView(graph_, graph_.node(n), facts_));
      std::set<int> labels;
      for (const Term& term : factors.terms) {
        if (!found.contains({term.value, term.dim})) continue;
        labels.insert(term.labels.begin(), term.labels.end());
      }
      const auto is_found = [&](int label) { return labels.contains(label); };
      for (const Term& term : factors.terms) {
        if (contains(graph_.node(n).outputs, term.value) &&
            std::ranges::any_of(term.labels, is_found)) {
          found.emplace(term.value, term.dim);
        }
      }
      for (const Map& map : factors.maps) {
        if (found.contains({map.a, map.a_dim})) found.emplace(map.b, map.b_dim);
      }
    }
    std::vector<int64_t> axes;
    for (const auto& [value, dim] : found) {
      if (value == part.sum) axes.push_back(dim);
    }
    if (axes.empty()) {
      throw UnsupportedError("their sum, ", in_quotes(graph_.value(part.sum).name),
                             ", has no axis of their weights");
    }
    return axes;
  }

  const Graph& graph_;
  const Facts& facts_;
  const Coupling& coupling_;
  const ValueFlags from_weights_;
  ValueFlags real_;                  // made of floating-point weights
  ValueFlags computed_;              // from the weights of the last part and data
  IdVector<NodeId, bool> computes_;  // these values
};

/// Has another input: a flag for each expert, and one for what is of none. Where it is 0, weights
/// are zero.
void build_part(const Graph& whole, const Coupling& coupling, const ExpertPart& part, GroupId group,
                Graph& graph, TensorMemory& memory) {
  graph = whole;
  graph.nodes.clear();
  graph.inputs = part.inputs;
  graph.outputs = {part.sum};
  int opset = kSumsOpset;
  for (const Node& node : whole.nodes) {
    if (node.domain.empty()) opset = node.opset;
  }
  GraphBuilder builder(graph, memory, opset);
  for (const Value& value : whole.values) builder.reserve(value.name);
  const ValueId flags = builder.input(builder.unused_name(), DType::kFloat32);
  std::map<ValueId, ValueId> masked;
  for (const ValueId v : part.weights) {
    const int axis = dim_of_group(coupling, v, group);
    masked[v] = where_present(builder, v, flags, channels_along(coupling, v, axis, group), axis,
                              coupling.value_dim_classes[v].size());
  }
  for (const NodeId n : part.nodes) {
    Node node = whole.node(n);
    for (ValueId& v : node.inputs) {
      if (const auto found = masked.find(v); found != masked.end()) v = found->second;
    }
    graph.nodes.push_back(std::move(node));
  }
  builder.finished();
}

EngineValue nothing() { return host_value({"", DType::kFloat32, {1}, std::vector<std::byte>(4)}); }

/// Flags for build_part(): of one expert, or of none if it is `size`.
EngineValue flags_of(int size, int expert) {
  std::vector<float> flags(static_cast<size_t>(size) + 1);
  for (const int there : {expert, size}) flags[static_cast<size_t>(there)] = 1;
  const auto bytes = std::as_bytes(std::span(flags));
  return host_value({"", DType::kFloat32, {size + 1}, {bytes.begin(), bytes.end()}});
}

/// What the branches of experts add. @throws UnsupportedError if some have none
std::vector<std::pair<int, ValueId>> values_of_branches(const Graph& graph, const Group& group) {
  std::vector<std::pair<int, ValueId>> added;
  std::set<int> experts;
  for (const ChannelBranch& own : group.branches) {
    added.emplace_back(own.channel, added_value(graph, own.branch));
    experts.insert(own.channel);
  }
  if (std::ssize(experts) != group.size) {
    throw UnsupportedError("some of them are no branches of a sum, as others are");
  }
  return added;
}

}  // namespace

ExpertContributions::ExpertContributions(Engine& engine, const Graph& graph, const Facts& facts,
                                         const Coupling& coupling, const Needs& needs)
    : coupling_(coupling) {
  if (!needs.channels.contains(Measure::kContribution)) return;
  ExpertPartFinder finder(graph, facts, coupling);
  for (const GroupId g : coupling.groups.ids()) {
    const Group& group = coupling.groups[g];
    if (!has_experts(group)) continue;
    try {
      std::optional<ExpertPart> part;
      std::vector<std::pair<int, ValueId>> added;
      std::vector<int64_t> axes;
      if (group.branches.empty()) {
        part = finder.of(g);
        axes = part->features;
      } else {
        added = values_of_branches(graph, group);
        const size_t rank = facts.shapes[added.front().second]->size();
        axes = {channel_axis(graph, group.branches.front().branch, rank)};
      }
      Layer& layer = layers_.emplace_back();
      layer.group = g;
      layer.norms.resize(group.size);
      layer.tokens.resize(group.size);
      layer.added = std::move(added);
      const ValueId with = layer.sums.input("with", DType::kFloat32);
      const ValueId without = layer.sums.input("without", DType::kFloat32);
      sum_norms(layer.sums, with, without, std::move(axes));
      layer.sum.emplace(engine, layer.sums.finished());
      if (!part) continue;
      build_part(graph, coupling, *part, g, layer.graph, layer.memory);
      layer.part.emplace(engine, layer.graph);
    } catch (const UnsupportedError& error) {
      unmeasured_[group.id] = error.what();
    }
  }
}

std::vector<ValueId> ExpertContributions::values() const {
  std::set<ValueId> all;
  for (const Layer& layer : layers_) {
    for (const auto& [expert, value] : layer.added) all.insert(value);
    if (layer.part) all.insert(layer.graph.inputs.begin(), layer.graph.inputs.end() - 1);
  }
  return {all.begin(), all.end()};
}

void ExpertContributions::add(const std::vector<ValueId>& values, const EngineValues& found) {
  for (Layer& layer : layers_) run(layer, values, found);
}

void ExpertContributions::run(Layer& layer, const std::vector<ValueId>& values,
                              const EngineValues& found) {
  const auto known = [&](ValueId v) -> EngineValue {
    const auto place = std::ranges::find(values, v);
    return place == values.end() ? nullptr : found[place - values.begin()];
  };
  const auto count = [&](int expert, EngineValue with, EngineValue without) {
    const TensorList sums = on_host(layer.sum->run({std::move(with), std::move(without)}));
    layer.norms[expert] += numbers_of(sums[0]).floats.front();
    layer.tokens[expert] += numbers_of(sums[1]).floats.front();
  };
  for (const auto& [expert, value] : layer.added) {
    if (known(value) != nullptr) count(expert, known(value), nothing());
  }
  if (!layer.part) return;
  EngineValues inputs;
  for (auto v = layer.graph.inputs.begin(); v != layer.graph.inputs.end() - 1; ++v) {
    inputs.push_back(known(*v));
  }
  if (contains(inputs, nullptr)) return;
  const int size = static_cast<int>(layer.norms.size());
  const auto part_of = [&](int expert) {
    EngineValues all = inputs;
    all.push_back(flags_of(size, expert));
    return layer.part->run(all).front();
  };
  const EngineValue without = part_of(size);
  for (int e = 0; e < size; ++e) count(e, part_of(e), without);
}

void ExpertContributions::finish(Statistics& statistics) const {
  statistics.unmeasured = unmeasured_;
  if (layers_.empty()) return;
  const double samples = static_cast<double>(std::max<int64_t>(1, statistics.samples));
  for (const Measure measure : {Measure::kContribution, Measure::kRouted}) {
    auto& groups = statistics.channels[measure];
    groups.assign(coupling_.groups.size(), {});
    for (const Layer& layer : layers_) {
      if (std::ranges::all_of(layer.tokens, [](double n) { return n == 0; })) continue;
      groups[layer.group] = measure == Measure::kRouted ? layer.tokens : layer.norms;
      for (double& x : groups[layer.group]) x /= samples;
    }
  }
}

int64_t ExpertContributions::bytes() const {
  size_t numbers = 0;
  for (const Layer& layer : layers_) numbers += layer.norms.size() + layer.tokens.size();
  return static_cast<int64_t>(numbers * sizeof(double));
}

}  // namespace parsimony
