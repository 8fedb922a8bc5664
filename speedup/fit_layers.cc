#include "parsimony/speedup/fit_layers.h"

#include <algorithm>
#include <optional>

#include "parsimony/base/ranges.h"
#include "parsimony/graph/attributes.h"
#include "parsimony/graph/operators/linear_form.h"

namespace parsimony {
namespace {

class FitLayerFinder {
 public:
  FitLayerFinder(const Graph& graph, const std::vector<std::string>& fixed)
      : graph_(graph), fixed_(fixed), producer_(producers_of(graph)) {
    readers_.resize(graph.values.size());
    weight_reads_.resize(graph.weights.size(), 0);
    for (const NodeId n : graph.nodes.ids()) read(n);
  }

  std::vector<FitLayer> layers() const {
    std::vector<FitLayer> result;
    for (const NodeId n : graph_.nodes.ids()) {
      std::optional<FitLayer> layer = matrix_of(n).layer;
      if (!layer) continue;
      if (layer->state == kNone) follow(*layer);
      layer->rectified = only_relu_reads(layer->answer);
      result.push_back(*layer);
    }
    return result;
  }

  std::vector<UnfitLayer> unfit() const {
    std::vector<UnfitLayer> result;
    for (const NodeId n : graph_.nodes.ids()) {
      if (const Found found = matrix_of(n); !found.why.empty()) result.push_back({n, found.why});
    }
    return result;
  }

  std::vector<NodeId> norms() const {
    std::vector<NodeId> result;
    for (const NodeId n : graph_.nodes.ids()) {
      if (graph_.nodes[n].body == kNone && is_norm(graph_.nodes[n])) result.push_back(n);
    }
    return result;
  }

 private:
  // A Graph that was edited does not keep uses up to date.
  void read(NodeId n) {
    const Node& node = graph_.node(n);
    const auto use = [&](ValueId v) {
      if (v == kNone) return;
      readers_[v].push_back(n);
      const WeightId weight = graph_.value(v).weight;
      if (weight != kNone) ++weight_reads_[weight];
    };
    for (const ValueId v : node.inputs) use(v);
  }

  /// The weight of operand `i`, if it has no other reader; else kNone.
  WeightId own_weight(const Node& node, size_t i) const {
    if (i >= node.inputs.size() || node.inputs[i] == kNone) return kNone;
    const WeightId weight = graph_.value(node.inputs[i]).weight;
    if (weight == kNone || weight_reads_[weight] != 1) return kNone;
    return is_floating(graph_.weight(weight).dtype) ? weight : kNone;
  }

  struct Matrix {
    WeightId weight = kNone;
    bool transposed = false;
  };

  /// Operand `i` if it is a weight of the node's own, perhaps transposed before it.
  Matrix own_matrix(const Node& node, size_t i) const {
    if (i >= node.inputs.size() || node.inputs[i] == kNone) return {};
    const NodeId n = producer_[node.inputs[i]];
    if (n == kNone || !has_trait(graph_.node(n), kPermutes)) return {own_weight(node, i)};
    const Node& turned = graph_.node(n);
    const WeightId weight = own_weight(turned, 0);
    if (weight == kNone || graph_.weight(weight).dims.size() != 2) return {};
    if (only_reader(turned.outputs[0]) == kNone) return {};
    const auto* order = attr_if<std::vector<int64_t>>(turned, "perm");
    return {weight, order == nullptr || order->front() == 1};
  }

  bool is_activation(ValueId v) const { return v != kNone && graph_.value(v).weight == kNone; }

  /// The only reader of a value; kNone if there are several.
  NodeId only_reader(ValueId v) const {
    const auto& readers = readers_[v];
    const bool shown = contains(graph_.outputs, v);
    return readers.size() == 1 && !shown && !graph_.value(v).captured ? readers[0] : kNone;
  }

  bool only_relu_reads(ValueId v) const {
    const auto& readers = readers_[v];
    if (contains(graph_.outputs, v) || graph_.value(v).captured || readers.empty()) return false;
    return std::ranges::all_of(readers,
                               [&](NodeId n) { return has_trait(graph_.node(n), kRectifies); });
  }

  /// A layer, or why a node with a matrix of its own is none; neither for other nodes.
  struct Found {
    std::optional<FitLayer> layer;
    std::string_view why = {};
  };

  Found matrix_of(NodeId n) const {
    const Node& node = graph_.node(n);
    for (const int operand : weight_operands(node)) {
      const auto i = static_cast<size_t>(operand);
      if (i >= node.inputs.size() || node.inputs[i] == kNone) continue;
      if (const WeightId matrix = matrix_at(node.inputs[i]); matrix != kNone) {
        return layer_of(n, operand, matrix);
      }
    }
    return {};
  }

  /// The matrix that a value is, perhaps transposed.
  WeightId matrix_at(ValueId v) const {
    const WeightId weight = graph_.value(v).weight;
    if (weight != kNone) return weight;
    const NodeId n = producer_[v];
    if (n == kNone || !has_trait(graph_.node(n), kPermutes)) return kNone;
    return graph_.value(graph_.node(n).inputs[0]).weight;
  }

  Found layer_of(NodeId n, int operand, WeightId shown) const {
    const Node& node = graph_.node(n);
    const Weight& matrix = graph_.weight(shown);
    const auto form = linear_form(node, operand, matrix.dims.size());
    if (schema_of(node).linear.kind == LinearKind::kContraction) return {{}, "an equation"};
    if (!form || (operand != 0 && !is_activation(node.inputs[0]))) return {};  // tables, constants
    if (node.body != kNone) return {{}, "in a branch or loop"};  // it may run never, or many times
    if (!is_floating(matrix.dtype)) return {{}, "quantised"};
    if (contains(fixed_, matrix.name)) return {{}, "single elements were pruned"};
    if (form->kind == LinearKind::kRecurrence) return recurrence(n, *form);
    if (form->kind == LinearKind::kAttention) return {{}, "part of an attention operator"};
    if (!form->plain) return {{}, "part of a fused operator"};
    const auto [weight, transposed] = own_matrix(node, static_cast<size_t>(operand));
    if (weight == kNone) return {{}, "shares its matrix"};
    if (operand != 1) return {{}, "its matrix is the first factor"};
    const bool turned = form->kind == LinearKind::kTransposedConvolution;
    const bool conv = turned || form->kind == LinearKind::kConvolution;
    if (!conv && matrix.dims.size() != 2) return {{}, "several matrices in one"};
    if (attr(node, "alpha", 1.0) != 1 || attr(node, "beta", 1.0) != 1) {
      return {{}, "scaled by alpha or beta"};
    }
    if (turned && (attr_if<std::vector<int64_t>>(node, "output_shape") != nullptr ||
                   attr(node, "auto_pad", "NOTSET") != "NOTSET")) {
      return {{}, "padded to a size of its output"};
    }
    FitLayer layer;
    layer.node = n;
    layer.input = node.inputs[0];
    layer.weight = weight;
    layer.out_axis = transposed ? 1 - form->out_axis : form->out_axis;
    layer.answer = node.outputs[0];
    layer.output_axis = conv ? 1 : -1;
    const int64_t channels = matrix.dims[static_cast<size_t>(layer.out_axis)];
    const bool grouped = turned && form->groups > 1;
    const int64_t out = grouped ? channels * form->groups : channels;
    layer.shift = form->bias < 0 ? kNone : shift_at(node, static_cast<size_t>(form->bias), out);
    if (grouped && layer.shift == kNone)
      return {{}, "a transposed convolution in groups, without bias"};
    layer.channels = grouped ? layer.shift : weight;
    layer.channels_axis = grouped ? 0 : layer.out_axis;
    return {layer};
  }

  Found recurrence(NodeId n, const LinearForm& form) const {
    const Node& node = graph_.node(n);
    const std::vector<int> operands = weight_operands(node);
    FitLayer layer;
    layer.node = n;
    layer.input = node.inputs[0];
    layer.weight = own_weight(node, static_cast<size_t>(operands[0]));
    layer.state = own_weight(node, static_cast<size_t>(operands[1]));
    if (layer.weight == kNone || layer.state == kNone) return {{}, "shares its matrix"};
    if (contains(fixed_, graph_.weight(layer.state).name)) {
      return {{}, "single elements were pruned"};
    }
    const int lengths = schema_of(node).recurrence.lengths;
    if (lengths >= 0 && is_given(node, static_cast<size_t>(lengths))) {
      return {{}, "its sequences have lengths"};
    }
    layer.shift = own_weight(node, static_cast<size_t>(form.bias));
    layer.out_axis = static_cast<int>(graph_.weight(layer.weight).dims.size()) - 2;
    const auto present = [](ValueId v) { return v != kNone; };
    layer.answer = *std::ranges::find_if(node.outputs, present);
    layer.output_axis = -1;
    layer.channels = layer.state;
    layer.channels_axis = static_cast<int>(graph_.weight(layer.state).dims.size()) - 1;
    return {layer};
  }

  static bool is_given(const Node& node, size_t i) {
    return i < node.inputs.size() && node.inputs[i] != kNone;
  }

  /// A vector of `size` that only this node reads.
  WeightId shift_at(const Node& node, size_t i, int64_t size) const {
    const WeightId weight = own_weight(node, i);
    if (weight == kNone) return kNone;
    return graph_.weight(weight).dims == Shape{size} ? weight : kNone;
  }

  /// The answer's number of channels.
  int64_t channels_of(const FitLayer& layer) const {
    return graph_.weight(layer.channels).dims[static_cast<size_t>(layer.channels_axis)];
  }

  /// Finds the value that the layer should reproduce.
  void follow(FitLayer& layer) const {
    NodeId reader = only_reader(layer.answer);
    if (reader != kNone && schema_of(graph_.node(layer.node)).linear.bias < 0 &&
        has_trait(graph_.node(reader), kAdds)) {
      const Node& add = graph_.node(reader);
      const size_t other = add.inputs[0] == layer.answer ? 1 : 0;
      const WeightId bias = shift_at(add, other, channels_of(layer));
      if (bias != kNone) {
        layer.shift = bias;
        layer.answer = add.outputs[0];
        reader = only_reader(layer.answer);
      }
    }
    if (reader != kNone && layer.output_axis == 1 && is_norm(graph_.node(reader)) &&
        graph_.node(reader).inputs[0] == layer.answer) {
      layer.norm = reader;
      layer.answer = graph_.node(reader).outputs[0];
      if (layer.shift == kNone) {
        layer.shift =
            shift_at(graph_.node(reader), statistics_of(graph_.node(reader)), channels_of(layer));
        layer.shift_sign = -1;
      }
      reader = only_reader(layer.answer);
    }
    if (reader == kNone || !has_trait(graph_.node(reader), kAdds)) return;
    const Node& add = graph_.node(reader);
    const ValueId beside = add.inputs[add.inputs[0] == layer.answer ? 1 : 0];
    if (is_activation(beside) && !waits_for_later(beside, layer.node)) {
      layer.answer = add.outputs[0];
    }
  }

  bool is_norm(const Node& node) const {
    if (schema_of(node).norm.statistics < 0 || attr(node, "training_mode", 0) != 0) return false;
    const size_t mean = statistics_of(node);
    if (node.inputs.size() < mean + 2 || !is_activation(node.inputs[0])) return false;
    return own_weight(node, mean) != kNone && own_weight(node, mean + 1) != kNone;
  }

  static size_t statistics_of(const Node& norm) {
    return static_cast<size_t>(schema_of(norm).norm.statistics);
  }

  /// Does a layer after `node` contribute to the value?
  bool waits_for_later(ValueId value, NodeId node) const {
    std::vector<ValueId> open = {value};
    IdVector<ValueId, bool> seen(graph_.values.size(), false);
    while (!open.empty()) {
      const ValueId v = open.back();
      open.pop_back();
      if (seen[v]) continue;
      seen[v] = true;
      const NodeId producer = producer_[v];
      if (producer == kNone || producer <= node) continue;  // nodes stand behind what they read
      if (matrix_of(producer).layer) return true;
      for_each_read(graph_, graph_.node(producer), [&](ValueId read) { open.push_back(read); });
    }
    return false;
  }

  const Graph& graph_;
  const std::vector<std::string>& fixed_;
  IdVector<ValueId, NodeId> producer_;
  IdVector<ValueId, std::vector<NodeId>> readers_;
  IdVector<WeightId, int> weight_reads_;
};

}  // namespace

std::vector<FitLayer> fit_layers(const Graph& graph, const std::vector<std::string>& fixed) {
  return FitLayerFinder(graph, fixed).layers();
}

std::vector<UnfitLayer> unfit_layers(const Graph& graph, const std::vector<std::string>& fixed) {
  return FitLayerFinder(graph, fixed).unfit();
}

std::vector<int64_t> kept_channels(const SmallNetwork& small, const FitLayer& layer) {
  return small.kept(small.graph().weight(layer.channels).name, layer.channels_axis);
}

std::vector<NodeId> batch_norms(const Graph& graph) { return FitLayerFinder(graph, {}).norms(); }

IdVector<ValueId, NodeId> producers_of(const Graph& graph) {
  IdVector<ValueId, NodeId> producers(graph.values.size(), kNone);
  for (const NodeId n : graph.nodes.ids()) {
    for (const ValueId v : graph.nodes[n].outputs) {
      if (v != kNone) producers[v] = n;
    }
  }
  return producers;
}

std::vector<NodeId> nodes_for(const Graph& graph, const std::vector<ValueId>& expected,
                              const IdVector<NodeId, bool>& done,
                              const IdVector<ValueId, bool>& known) {
  IdVector<ValueId, bool> open(graph.values.size(), false);
  for (const ValueId v : expected) open[v] = true;
  std::vector<NodeId> found;
  for (const NodeId n : graph.nodes.reversed_ids()) {
    const Node& node = graph.nodes[n];
    const auto is_open = [&](ValueId v) {
      return v != kNone && open[v] && (known.empty() || !known[v]);
    };
    const bool is_done = !done.empty() && done[n];
    if (is_done || !std::ranges::any_of(node.outputs, is_open)) continue;
    found.push_back(n);
    for_each_read(graph, node, [&](ValueId v) { open[v] = true; });
  }
  std::ranges::reverse(found);
  return found;
}

Graph part_for(const Graph& graph, const std::vector<ValueId>& expected) {
  Graph part = graph;
  part.nodes.clear();
  for (const NodeId n : nodes_for(graph, expected)) part.nodes.push_back(graph.nodes[n]);
  part.outputs = expected;
  return part;
}

}  // namespace parsimony
