#include "parsimony/api/latency/measure.h"

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <deque>

#include "parsimony/base/errors.h"
#include "parsimony/base/ranges.h"
#include "parsimony/graph/elements.h"
#include "parsimony/graph/graph_builder.h"
#include "parsimony/graph/model_editor.h"
#include "parsimony/masks/mask.h"
#include "parsimony/speedup/make_plan.h"

namespace parsimony {
namespace {

constexpr size_t kMostWidths = 10;

/// Measures one subgraph at widths of its dim classes.
class SubgraphMeasure {
 public:
  SubgraphMeasure(const Coupled& network, const Subgraph& subgraph, LatencyMeter& meter)
      : network_(network), subgraph_(subgraph), meter_(meter) {}

  LatencyTable run() {
    LatencyTable table;
    table.what = subgraph_.what;
    if (!subgraph_.dim_classes.empty()) table.x = widths_along(0);
    if (subgraph_.dim_classes.size() > 1) table.y = widths_along(1);
    std::vector<std::vector<int>> points;
    for (const int x : table.x) {
      for (const int y : table.y) points.push_back(point(x, y));
    }
    const auto times = seconds_at(points);
    table.seconds.clear();
    for (const auto& time : times) {
      if (!time) return {table.what};
      table.seconds.push_back(*time);
    }
    return table;
  }

  /// Returns the error at a held-out width; empty if none can be measured.
  std::optional<double> held_out_error(const LatencyTable& table) {
    constexpr int kNarrow = 4;
    int width = 0;
    int widest = kNarrow;
    for (size_t i = 1; i < table.x.size(); ++i) {
      const int gap = table.x[i] - table.x[i - 1];
      if (gap <= widest) continue;
      widest = gap;
      width = reachable(0, table.x[i - 1] + gap / 2);
    }
    if (width == 0 || contains(table.x, width)) return std::nullopt;
    const int y = table.y.back();
    const auto found = seconds_at({point(width, y)})[0];
    if (!found || *found <= 0) return std::nullopt;
    return std::abs(table.at(width, y) / *found - 1);
  }

 private:
  std::vector<int> point(int x, int y) const {
    std::vector<int> widths;
    if (!subgraph_.dim_classes.empty()) widths.push_back(x);
    if (subgraph_.dim_classes.size() > 1) widths.push_back(y);
    return widths;
  }

  int size_of_dim_class(size_t axis) const {
    return static_cast<int>(network_.coupling.channels(subgraph_.dim_classes[axis]).size());
  }

  /// Returns the widths of an axis, with the other one at full width.
  std::vector<int> widths_along(size_t axis) {
    std::vector<int> widths;
    std::vector<double> seconds;
    const auto measure = [&](const std::vector<int>& expected) {
      std::vector<std::vector<int>> points;
      std::vector<int> reached;
      for (const int width : expected) {
        const int possible = reachable(axis, width);
        if (contains(widths, possible)) continue;
        if (contains(reached, possible)) continue;
        reached.push_back(possible);
        std::vector<int> at;
        for (size_t i = 0; i < subgraph_.dim_classes.size(); ++i) {
          at.push_back(i == axis ? possible : size_of_dim_class(i));
        }
        points.push_back(std::move(at));
      }
      const auto times = seconds_at(points);
      bool any = false;
      for (size_t i = 0; i < reached.size(); ++i) {
        if (!times[i]) continue;
        const auto place = std::ranges::lower_bound(widths, reached[i]);
        seconds.insert(seconds.begin() + (place - widths.begin()), *times[i]);
        widths.insert(place, reached[i]);
        any = true;
      }
      return any;
    };
    measure(first_widths(size_of_dim_class(axis)));
    while (widths.size() < kMostWidths) {
      const int next = next_width(widths, seconds);
      if (next == 0 || !measure({next})) break;
    }
    if (widths.empty()) widths.push_back(size_of_dim_class(axis));
    return widths;
  }

  /// Removes channels from the end of the dim class until `width` indices are left, or no fewer are
  /// possible.
  int narrow(size_t axis, int width, AxisMasks& masks) const {
    const auto channels = network_.coupling.channels(subgraph_.dim_classes[axis]);
    PerGroup<std::vector<int>> counts(network_.coupling.groups.size());
    int kept = 0;
    for (const ChannelId& channel : channels) {
      if (!masks.keeps(channel)) continue;
      ++kept;
      if (channel.group == kNone) continue;
      auto& of_group = counts[channel.group];
      of_group.resize(masks.keep[channel.group].size());
      ++of_group[channel.channel];
    }
    for (size_t i = channels.size(); i-- > 0 && kept > width;) {
      const ChannelId& channel = channels[i];
      if (channel.group == kNone || !masks.keeps(channel)) continue;
      const GroupId g = channel.group;
      const size_t c = channel.channel;
      if (kept - counts[g][c] < 1) continue;
      masks.keep[g][c] = 0;
      kept -= counts[g][c];
    }
    return kept;
  }

  int reachable(size_t axis, int width) const {
    AxisMasks masks = AxisMasks::all_kept(network_.coupling);
    return narrow(axis, width, masks);
  }

  /// Returns the subgraph at these widths; empty if the network cannot be pruned that way.
  std::optional<StandaloneSubgraph> cut(const std::vector<int>& widths) const {
    const Coupling& coupling = network_.coupling;
    AxisMasks masks = AxisMasks::all_kept(coupling);
    for (size_t i = 0; i < widths.size(); ++i) {
      if (narrow(i, widths[i], masks) != widths[i]) return std::nullopt;
    }
    try {
      keep_enough(coupling, {}, masks);
      const PlanAttempt made = make_plan(network_.graph, network_.facts, coupling, masks);
      if (!made.refused.empty()) return std::nullopt;
      // Large weights keep their old memory, of which the first elements are used: values do not
      // matter for timing.
      GraphEditor editor(network_.graph);
      replay(made.plan, editor);
      StandaloneSubgraph subgraph = standalone_subgraph(
          editor.graph(),
          infer(editor.graph(), small_probe(network_.graph, made.plan, network_.probe)),
          subgraph_.nodes);
      own_literals(subgraph.graph, subgraph.memory);  // sliced ones live in the editor
      return subgraph;
    } catch (const Error&) {
      return std::nullopt;
    }
  }

  std::vector<std::optional<double>> seconds_at(const std::vector<std::vector<int>>& points) {
    std::vector<std::optional<double>> seconds(points.size());
    std::deque<StandaloneSubgraph> cuts;
    std::vector<const Graph*> graphs;
    std::vector<size_t> places;
    for (size_t p = 0; p < points.size(); ++p) {
      auto subgraph = cut(points[p]);
      if (!subgraph) continue;
      graphs.push_back(&cuts.emplace_back(std::move(*subgraph)).graph);
      places.push_back(p);
    }
    const auto times = meter_.subgraphs(graphs);
    for (size_t i = 0; i < places.size(); ++i) seconds[places[i]] = times[i];
    return seconds;
  }

  const Coupled& network_;
  const Subgraph& subgraph_;
  LatencyMeter& meter_;
};

}  // namespace

TablesMeasured measure_subgraphs(const Coupled& network, std::span<const Subgraph> subgraphs,
                                 LatencyMeter& meter, LatencyTables& tables) {
  TablesMeasured measured;
  for (const Subgraph& subgraph : subgraphs) {
    if (tables.contains(subgraph.key)) continue;
    SubgraphMeasure measure(network, subgraph, meter);
    const LatencyTable& table = tables[subgraph.key] = measure.run();
    ++measured.count;
    if (const auto error = measure.held_out_error(table)) measured.errors.push_back(*error);
  }
  return measured;
}

namespace {

/// Returns the elements of `constant` in its type, for the types of shape arithmetic.
std::pair<DType, std::vector<std::byte>> elements_of(const HostTensor& constant) {
  const bool as_it_is = constant.dtype == DType::kBool || constant.dtype == DType::kInt32;
  const DType type = constant.floating() ? DType::kFloat32
                     : as_it_is          ? constant.dtype
                                         : DType::kInt64;
  const size_t size = size_of(type);
  std::vector<std::byte> bytes(constant.count() * size);
  for (size_t i = 0; i < constant.floats.size(); ++i) {
    write_number(constant.floats[i], type, bytes.data() + i * size);
  }
  for (size_t i = 0; i < constant.ints.size(); ++i) {
    const int64_t number = type == DType::kBool ? int64_t{constant.ints[i] != 0} : constant.ints[i];
    std::memcpy(bytes.data() + i * size, &number, size);  // little-endian: the low bytes
  }
  return {type, std::move(bytes)};
}

class Extraction {
 public:
  Extraction(const Graph& network, const Facts& facts, std::span<const NodeId> nodes)
      : network_(network), facts_(facts), nodes_(nodes) {
    for (const Weight& weight : network.weights) {
      if (!is_floating(weight.dtype)) continue;
      usual_ = weight.dtype;
      break;
    }
  }

  StandaloneSubgraph run() {
    subgraph_.graph.format = network_.format;
    for (const NodeId id : nodes_) inside_.insert(id);
    for (const NodeId id : nodes_) add(id);
    for (const NodeId id : nodes_) {
      for (const ValueId v : network_.node(id).outputs) {
        if (v != kNone && leaves(v)) mark_output(map_.at(v));
      }
    }
    finish(subgraph_.graph);
    return std::move(subgraph_);
  }

 private:
  void add(NodeId id) {
    Node node = network_.node(id);
    for (ValueId& v : node.inputs) v = operand(v);
    for (ValueId& v : node.outputs) v = v == kNone ? kNone : copied(v);
    subgraph_.graph.nodes.push_back(std::move(node));
  }

  /// Copies a value of the network without its producer.
  ValueId copied(ValueId v) {
    const auto [it, fresh] = map_.try_emplace(v, kNone);
    if (!fresh) return it->second;
    const Value& original = network_.value(v);
    Value value;
    value.name = original.name;
    value.dtype = original.dtype == DType::kUnknown ? usual_ : original.dtype;
    return it->second = subgraph_.graph.values.push_back(std::move(value));
  }

  ValueId operand(ValueId v) {
    if (v == kNone) return kNone;
    const auto known = map_.find(v);
    if (known != map_.end()) return known->second;
    const Value& original = network_.value(v);
    if (original.weight != kNone) return weight(v, network_.weight(original.weight));
    const auto& constant = facts_.constants[v];
    if (facts_.computed[v] && constant) return literal(v, *constant);
    if (original.producer != kNone && is_of_weights(original.producer)) {
      add(original.producer);
      return map_.at(v);
    }
    return input(v);
  }

  ValueId weight(ValueId v, const Weight& view) {
    const ValueId id = copied(v);
    subgraph_.graph.value(id).weight = subgraph_.graph.weights.push_back(view);
    subgraph_.graph.value(id).dtype = view.dtype;
    subgraph_.graph.weights.back().name = network_.value(v).name;
    return id;
  }

  ValueId literal(ValueId v, const HostTensor& constant) {
    auto [type, bytes] = elements_of(constant);
    const auto& memory = subgraph_.memory.emplace_back(std::move(bytes));
    return weight(v, {network_.value(v).name, type, constant.dims, memory.data(), size_of(type)});
  }

  ValueId input(ValueId v) {
    const auto& shape = facts_.shapes[v];
    if (!shape) {
      throw UnsupportedError("the shape of \"" + network_.value(v).name + "\" is unknown");
    }
    const ValueId id = copied(v);
    subgraph_.graph.value(id).declared = *shape;
    subgraph_.graph.value(id).is_input = true;
    subgraph_.graph.inputs.push_back(id);
    return id;
  }

  bool is_of_weights(NodeId id) const {
    const Node& node = network_.node(id);
    return !node.has_subgraph && std::ranges::all_of(node.inputs, [&](ValueId v) {
      if (v == kNone) return true;
      const Value& value = network_.value(v);
      if (value.weight != kNone || facts_.computed[v]) return true;
      return value.producer != kNone && is_of_weights(value.producer);
    });
  }

  /// Returns whether the value is read outside the subgraph, or not at all.
  bool leaves(ValueId v) const {
    const Value& value = network_.value(v);
    return value.is_output || value.uses.empty() ||
           std::ranges::any_of(value.uses,
                               [&](const Use& use) { return !inside_.contains(use.node); });
  }

  void mark_output(ValueId v) {
    subgraph_.graph.value(v).is_output = true;
    subgraph_.graph.outputs.push_back(v);
  }

  const Graph& network_;
  const Facts& facts_;
  std::span<const NodeId> nodes_;
  DType usual_ = DType::kFloat32;
  StandaloneSubgraph subgraph_;
  absl::flat_hash_set<NodeId> inside_;
  absl::flat_hash_map<ValueId, ValueId> map_;
};

}  // namespace

StandaloneSubgraph standalone_subgraph(const Graph& network, const Facts& facts,
                                       std::span<const NodeId> nodes) {
  return Extraction(network, facts, nodes).run();
}

}  // namespace parsimony
