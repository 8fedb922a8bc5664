#include "parsimony/graph/weights.h"

#include <algorithm>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "parsimony/graph/operators/linear_form.h"

namespace parsimony {

bool is_weight(const Graph& graph, const Value& value) {
  if (value.weight == kNone) return false;
  const DType type = graph.weight(value.weight).dtype;
  if (is_floating(type) || is_small_integer(type)) return true;
  const bool wide = type == DType::kInt32 || type == DType::kInt16 || type == DType::kUInt16;
  return wide && !value.uses.empty() && std::ranges::all_of(value.uses, [&](const Use& use) {
           return has_trait(graph.node(use.node), kReadsIntegers);
         });
}

bool is_table(const Graph& graph, const Value& value) {
  if (value.weight == kNone || is_weight(graph, value)) return false;
  return size_of(graph.weight(value.weight).dtype) > 0;
}

int zero_point_of(const Node& node, int input) {
  const OpSchema& schema = schema_of(node);
  for (const IntegerOperand& integers : {schema.integers, schema.data}) {
    const bool there =
        integers.zero_point >= 0 && std::cmp_less(integers.zero_point, node.inputs.size());
    if (integers.operand == input && there && node.inputs[integers.zero_point] != kNone) {
      return integers.zero_point;
    }
  }
  return -1;
}

bool is_gain_of_statistics(const Node& node, ValueId value) {
  const Norm& norm = schema_of(node).norm;
  return norm.statistics >= 0 && std::ssize(node.inputs) > norm.gain &&
         node.inputs[norm.gain] == value;
}

bool is_statistic(const Node& node, int input) {
  const int first = schema_of(node).norm.statistics;
  return first >= 0 && input >= first;
}

IdVector<ValueId, bool> depends_on_weights_only(const Graph& graph,
                                                const IdVector<ValueId, bool>& also) {
  IdVector<ValueId, bool> made(graph.values.size(), false);
  for (const ValueId v : made.ids()) {
    made[v] = graph.values[v].weight != kNone || (!also.empty() && also[v]);
  }
  const auto is_made = [&](ValueId v) { return v == kNone || made[v]; };
  for (const Node& node : graph.nodes) {
    // A branch may return a value that is not a weight; split positions may depend on sizes.
    if (node.inputs.empty() || node.has_subgraph || !is_made(node.inputs[0])) continue;
    const auto end = has_trait(node, kTakesApart) ? node.inputs.begin() + 1 : node.inputs.end();
    if (!std::all_of(node.inputs.begin(), end, is_made)) continue;
    for (const ValueId out : node.outputs) {
      if (out != kNone) made[out] = true;
    }
  }
  return made;
}

namespace {

constexpr int64_t kNoLayer = 0;
constexpr int64_t kAnyNumber = -1;

class TrainedWeights {
 public:
  explicit TrainedWeights(const Graph& graph)
      : graph_(graph),
        trained_(graph.weights.size(), false),
        producer_(graph.values.size(), kNone),
        constant_(graph.values.size(), false),
        marked_(graph.values.size(), false),
        channels_(graph.values.size(), kNoLayer) {
    for (const ValueId v : graph.values.ids()) constant_[v] = graph.value(v).weight != kNone;
    for (const NodeId n : graph.nodes.ids()) visit(n);
  }

  IdVector<WeightId, bool> result() && { return std::move(trained_); }

 private:
  void visit(NodeId n) {
    const Node& node = graph_.nodes[n];
    const auto is_constant = [&](ValueId v) { return v == kNone || constant_[v]; };
    const bool constant = !node.inputs.empty() && node.bodies.empty() &&
                          std::ranges::all_of(node.inputs, is_constant);
    const int64_t channels = constant ? kNoLayer : channels_of(node);
    for (const ValueId v : node.outputs) {
      if (v == kNone) continue;
      producer_[v] = n;
      constant_[v] = constant;
      channels_[v] = channels;
    }
  }

  /// Returns the channels of the layer from which the answer comes. Marks what the node trains.
  int64_t channels_of(const Node& node) {
    const OpSchema& schema = schema_of(node);
    int64_t before = kNoLayer;
    for (const ValueId v : node.inputs) {
      if (before == kNoLayer && v != kNone) before = channels_[v];
    }
    if (schema.linear.kind != LinearKind::kNotLinear) return channels_of_layer(node);
    if (schema.has(kAttends)) return kNoLayer;
    if (schema.norm.gain >= 0) {
      mark(operand(node, schema.norm.gain));
      mark(operand(node, schema.norm.shift));
      return before == kNoLayer ? length_of(operand(node, schema.norm.gain)) : before;
    }
    if (schema.zero == ZeroBehaviour::kFirst) mark(operand(node, 1));
    if (before != kNoLayer && (schema.traits & (kAdds | kMultiplies | kDivides)) != 0) {
      for (const ValueId v : node.inputs) {
        if (is_vector_of(v, before)) mark(v);
      }
    }
    return before;
  }

  int64_t channels_of_layer(const Node& node) {
    int64_t channels = kNoLayer;
    for (const int i : weight_operands(node)) {
      const ValueId v = node.inputs[static_cast<size_t>(i)];
      if (!constant_[v]) {
        mark_chosen(v);
        continue;
      }
      const int64_t made = channels_made_by(node, i, v);
      if (made == kNoLayer) continue;
      mark(v);
      channels = made;
    }
    if (channels != kNoLayer) mark(operand(node, schema_of(node).linear.bias));
    return channels;
  }

  /// By a matrix; kNoLayer if the operand is none.
  int64_t channels_made_by(const Node& node, int i, ValueId v) const {
    const LinearKind kind = schema_of(node).linear.kind;
    const WeightId weight = graph_.value(v).weight;
    if (kind == LinearKind::kLookup && !is_given(operand(node, 1))) return kNoLayer;
    if (weight == kNone) return kAnyNumber;
    const Shape& dims = graph_.weight(weight).dims;
    if (kind == LinearKind::kLookup) return dims.empty() ? kNoLayer : dims.back();
    if (kind == LinearKind::kContraction) return dims.size() < 2 ? kNoLayer : kAnyNumber;
    const auto form = linear_form(node, i, dims.size());
    if (!form) return kAnyNumber;
    // A product over one number is a table of products: of positions and frequencies.
    const bool sums = kind != LinearKind::kMatrixProduct || dims[form->in_axis] > 1;
    if (!sums) return kNoLayer;
    const bool grouped = kind == LinearKind::kTransposedConvolution;
    return form->out_axis < 0 ? 1 : dims[form->out_axis] * (grouped ? form->groups : 1);
  }

  /// Matrices among which data choose, as those of experts.
  void mark_chosen(ValueId v) {
    while (v != kNone && producer_[v] != kNone && !constant_[v]) {
      const Node& node = graph_.nodes[producer_[v]];
      const bool looks_up = schema_of(node).linear.kind == LinearKind::kLookup;
      v = looks_up ? operand(node, 0) : moved_from(v);
      if (looks_up) break;
    }
    if (v != kNone && constant_[v] && graph_.value(v).weight != kNone) mark(v);
  }

  static ValueId operand(const Node& node, int i) {
    return i < 0 || i >= std::ssize(node.inputs) ? kNone : node.inputs[static_cast<size_t>(i)];
  }

  /// An input of the network, or elements of one.
  bool is_given(ValueId v) const {
    while (v != kNone && !graph_.value(v).is_input) v = moved_from(v);
    return v != kNone;
  }

  /// Returns the value whose elements `v` has; kNone if they are computed.
  ValueId moved_from(ValueId v) const {
    const NodeId n = producer_[v];
    if (n == kNone) return kNone;
    const Node& node = graph_.nodes[n];
    const bool moves =
        (schema_of(node).traits & (kCopies | kPermutes | kRearranges | kTakesApart)) != 0;
    return moves ? node.inputs.front() : kNone;
  }

  WeightId underlying_weight(ValueId v) const {
    while (v != kNone && graph_.value(v).weight == kNone) v = moved_from(v);
    return v == kNone ? kNone : graph_.value(v).weight;
  }

  int64_t length_of(ValueId v) const {
    const WeightId weight = v == kNone ? kNone : underlying_weight(v);
    return weight == kNone ? kAnyNumber : graph_.weight(weight).count();
  }

  bool is_vector_of(ValueId v, int64_t channels) const {
    if (v == kNone || !constant_[v]) return false;
    const WeightId weight = underlying_weight(v);
    if (weight == kNone) return false;
    const int64_t count = graph_.weight(weight).count();
    const Shape& dims = graph_.weight(weight).dims;
    return count > 1 && std::ranges::max(dims) == count &&
           (channels == kAnyNumber || channels == count);
  }

  /// The weights that a constant is, or is computed from.
  void mark(ValueId constant) {
    std::vector<ValueId> open = {constant};
    while (!open.empty()) {
      const ValueId v = open.back();
      open.pop_back();
      if (v == kNone || !constant_[v] || marked_[v]) continue;
      marked_[v] = true;
      if (const WeightId weight = graph_.value(v).weight; weight != kNone) {
        trained_[weight] = is_floating(graph_.weight(weight).dtype);
      } else {
        const std::vector<ValueId>& inputs = graph_.nodes[producer_[v]].inputs;
        open.insert(open.end(), inputs.begin(), inputs.end());
      }
    }
  }

  const Graph& graph_;
  IdVector<WeightId, bool> trained_;
  IdVector<ValueId, NodeId> producer_;
  IdVector<ValueId, bool> constant_;  ///< computed from weights alone
  IdVector<ValueId, bool> marked_;
  IdVector<ValueId, int64_t> channels_;  ///< of the layer that it comes from
};

}  // namespace

IdVector<WeightId, bool> trained_weights(const Graph& graph) {
  const auto* source = dynamic_cast<const ParameterSource*>(graph.source.get());
  IdVector<WeightId, bool> trained(graph.weights.size(), false);
  bool any = false;
  const std::vector<std::string> names =
      source == nullptr ? std::vector<std::string>() : source->parameters();
  const std::unordered_set<std::string_view> parameters(names.begin(), names.end());
  for (const WeightId w : graph.weights.ids()) {
    if (!parameters.contains(graph.weights[w].name)) continue;
    any = true;
    trained[w] = is_floating(graph.weights[w].dtype);
  }
  return any ? trained : weights_of_layers(graph);
}

IdVector<WeightId, bool> weights_of_layers(const Graph& graph) {
  return TrainedWeights(graph).result();
}

}  // namespace parsimony
