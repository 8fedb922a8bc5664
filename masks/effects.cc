#include <absl/container/inlined_vector.h>

#include <algorithm>
#include <vector>

#include "parsimony/base/ranges.h"
#include "parsimony/graph/operators/node_view.h"
#include "parsimony/graph/operators/notation.h"
#include "parsimony/graph/operators/schema.h"
#include "parsimony/graph/operators/zero.h"
#include "parsimony/graph/weights.h"
#include "parsimony/masks/coupling_impl.h"

namespace parsimony {
namespace {

constexpr uint8_t bit(Role role) { return static_cast<uint8_t>(role); }

class EffectTracer {
 public:
  EffectTracer(const Graph& graph, const Facts& facts, const DimClasses& dim_classes,
               const Axes& axes)
      : graph_(graph), facts_(facts), dim_classes_(dim_classes), axes_(axes) {
    effects_.roles.resize(graph.values.size());
    effects_.zero.resize(graph.values.size());
    for (const ValueId v : graph.values.ids()) {
      const size_t rank = facts.shapes[v] ? facts.shapes[v]->size() : 0;
      effects_.roles[v].assign(rank, 0);
      effects_.zero[v].assign(rank, 0);
    }
  }

  Effects run() {
    for (const NodeId n : graph_.nodes.reversed_ids()) push_roles(n);
    start_from_weights();
    start_inside();
    do {
      changed_ = false;
      effects_.mixing.clear();
      effects_.unweighted.clear();
      effects_.experts.clear();
      for (const NodeId n : graph_.nodes.ids()) push_zeros(n);
    } while (changed_);
    return std::move(effects_);
  }

 private:
  bool prunable(ValueId value, int dim) const {
    const DimClassId dim_class = dim_classes_.of(value, dim);
    return dim_class != kNone && !dim_classes_.wholly_pinned(dim_class);
  }

  /// A label that appears in an output produces (out), any other consumes (in); in weight
  /// arithmetic the role is that of the result.
  void push_roles(NodeId id) {
    const Node& node = graph_.node(id);
    const Factors& factors = dim_classes_.factors()[id];
    const auto is_output = [&](ValueId v) { return is_made(node, v); };
    std::vector<uint8_t>& produced = produced_;
    produced.assign(factors.labels.size(), 0);
    for (const Term& term : factors.terms) {
      if (!is_output(term.value)) continue;
      const bool arithmetic = dim_classes_.from_weights(term.value);
      const uint8_t role =
          arithmetic ? roles(term.value)[static_cast<size_t>(term.dim)] : bit(Role::kOut);
      for (const int l : term.labels) produced[static_cast<size_t>(l)] |= role;
    }
    std::vector<ValueId>& met = met_;
    met.assign(factors.labels.size(), kNone);
    for (const Term& term : factors.terms) {
      if (is_output(term.value) || !dim_classes_.from_weights(term.value)) continue;
      for (const int l : term.labels) {
        if (!axes_.free(dim_classes_.label_id(id, l))) continue;
        ValueId& before = met[static_cast<size_t>(l)];
        const bool second = before == term.value;  // a recurrence consumes what it produces
        before = term.value;
        uint8_t role = second ? 0 : produced[static_cast<size_t>(l)];
        if (role == 0) role = bit(Role::kIn);
        const bool divides = contains(factors.divisors, term.value);
        roles(term.value)[static_cast<size_t>(term.dim)] |= divides ? bit(Role::kWith) : role;
      }
    }
    for (const Map& map : factors.maps) {
      if (!dim_classes_.from_weights(map.a)) continue;
      const uint8_t role = dim_classes_.from_weights(map.b)
                               ? roles(map.b)[static_cast<size_t>(map.b_dim)]
                               : bit(Role::kOut);
      roles(map.a)[static_cast<size_t>(map.a_dim)] |= role;
    }
  }

  void start_from_weights() {
    for (const ValueId v : graph_.values.ids()) {
      if (graph_.values[v].is_input) start_from_input(v);
      if (!is_weight(graph_, graph_.values[v])) continue;  // tables stay as they are
      for (size_t d = 0; d < effects_.roles[v].size(); ++d) {
        effects_.zero[v][d] =
            (effects_.roles[v][d] & (bit(Role::kOut) | bit(Role::kIn))) != 0 ? 1 : 0;
      }
    }
  }

  /// Starts with zeros where an input may lack indices, as these are zero in the reference.
  void start_from_input(ValueId v) {
    for (size_t d = 0; d < effects_.zero[v].size(); ++d) {
      effects_.zero[v][d] = dim_classes_.is_free(v, static_cast<int>(d)) ? 1 : 0;
    }
  }

  /// In which operands does a label appear, and is it zero there?
  struct LabelState {
    int operands = 0;       // inputs that have the label
    int zeros = 0;          // of them, those that are zero along it
    bool divisor = false;   // a divisor has it and is zero
    bool weighted = false;  // a weight has it
    absl::InlinedVector<OperandSlice, 8> slices;
  };

  LabelState state_of(NodeId id, int label, ZeroBehaviour behaviour) const {
    const Node& node = graph_.node(id);
    const Factors& factors = dim_classes_.factors()[id];
    const bool shifts = behaviour == ZeroBehaviour::kQuotient;
    const int zero_point = shifts ? schema_of(node).integers.zero_point : -1;
    LabelState result;
    for (int i = 0; i < static_cast<int>(node.inputs.size()); ++i) {
      const ValueId value = node.inputs[i];
      if (value == kNone) continue;
      OperandSlice slice{.operand = i};
      bool zero = i == zero_point;  // removed integers have their zero point
      for (const Term& term : factors.terms) {
        if (term.value != value || !contains(term.labels, label)) continue;
        slice.has_axis = true;
        zero = zero || zero_at(term.value, term.dim);
      }
      slice.divides = contains(factors.divisors, value);
      if (zero) slice.content = SliceValue::kZero;
      result.operands += slice.has_axis ? 1 : 0;
      result.zeros += slice.has_axis && zero ? 1 : 0;
      result.weighted = result.weighted || (slice.has_axis && dim_classes_.from_weights(value));
      result.divisor = result.divisor || (slice.divides && zero);
      result.slices.push_back(slice);
    }
    return result;
  }

  /// Results of the node, and what it hands to its bodies.
  bool is_made(const Node& node, ValueId v) const {
    if (contains(node.outputs, v)) return true;
    return std::ranges::any_of(node.bodies,
                               [&](BodyId b) { return contains(graph_.bodies[b].inputs, v); });
  }

  /// Starts with bodies' inputs as zero; they stay so until an operand or own result is not.
  void start_inside() {
    for (const Body& body : graph_.bodies) {
      for (const ValueId v : body.inputs) std::ranges::fill(effects_.zero[v], 1);
    }
  }

  /// One axis of what goes in and out: where one turn may leave something, all may.
  void pass_zeros(NodeId id) {
    const Node& node = graph_.node(id);
    const Factors& factors = dim_classes_.factors()[id];
    for (size_t l = 0; l < factors.labels.size(); ++l) {
      bool zero = true;
      for (const Term& term : factors.terms) {
        if (!contains(term.labels, static_cast<int>(l)) || is_made(node, term.value)) continue;
        zero = zero && zero_at(term.value, term.dim);
      }
      set_outputs(id, static_cast<int>(l), zero);
    }
  }

  void push_zeros(NodeId id) {
    if (!graph_.node(id).bodies.empty()) return pass_zeros(id);
    const Factors& factors = dim_classes_.factors()[id];
    const NodeView view(graph_, graph_.node(id), facts_);
    const Transfer transfer(view);
    for (size_t l = 0; l < factors.labels.size(); ++l) {
      const LabelId label = dim_classes_.label_id(id, static_cast<int>(l));
      if (factors.labels[l].size <= 1 || !axes_.free(label)) continue;
      const LabelState at = state_of(id, static_cast<int>(l), transfer.behaviour());
      const Occurrence event{dim_class_of_label(factors, static_cast<int>(l)), label, id};
      if (factors.labels[l].mixes || leaves_range(factors.labels[l], transfer.behaviour(), at)) {
        effects_.mixing.push_back(event);
      }
      if (factors.labels[l].role == notation::LabelRole::kExpert) {
        effects_.experts.push_back(event);
      }
      if (factors.labels[l].mixes || (factors.labels[l].contracted && !at.weighted)) {
        effects_.unweighted.push_back(event);
      }
      set_outputs(id, static_cast<int>(l), transfer(at.slices) == SliceValue::kZero);
    }
    push_maps(factors, transfer);
  }

  /// Summed without being zero, or made infinite: the masked original cannot represent the removal.
  static bool leaves_range(const Label& label, ZeroBehaviour behaviour, const LabelState& at) {
    if (label.contracted) return is_product(behaviour) ? at.zeros == 0 : at.zeros < at.operands;
    return at.divisor || (behaviour == ZeroBehaviour::kUndefined && at.zeros > 0);
  }

  DimClassId dim_class_of_label(const Factors& factors, int label) const {
    for (const Term& term : factors.terms) {
      if (term.labels.size() == 1 && term.labels[0] == label)
        return dim_classes_.of(term.value, term.dim);
    }
    return kNone;
  }

  void set_outputs(NodeId id, int label, bool zero) {
    const Node& node = graph_.node(id);
    for (const Term& term : dim_classes_.factors()[id].terms) {
      if (!is_made(node, term.value) || !contains(term.labels, label)) continue;
      uint8_t& flag = effects_.zero[term.value][static_cast<size_t>(term.dim)];
      changed_ = changed_ || (flag != 0 && !zero && !contains(node.outputs, term.value));
      flag = zero ? 1 : 0;
    }
  }

  /// A concatenated dimension is zero if all its segments and its padding are.
  void push_maps(const Factors& factors, const Transfer& transfer) {
    for (const Map& map : factors.maps) {
      std::vector<OperandSlice> parts;
      for (const Map& other : factors.maps) {
        if (other.b != map.b || other.b_dim != map.b_dim) continue;
        const bool zero = zero_at(other.a, other.a_dim);
        parts.push_back(
            {.content = zero ? SliceValue::kZero : SliceValue::kVaries, .has_axis = true});
      }
      const bool zero = !is_product(transfer.behaviour()) && transfer(parts) == SliceValue::kZero;
      effects_.zero[map.b][static_cast<size_t>(map.b_dim)] = zero ? 1 : 0;
    }
  }

  bool zero_at(ValueId value, int dim) const {
    return effects_.zero[value][static_cast<size_t>(dim)] != 0;
  }
  FewFlags& roles(ValueId value) { return effects_.roles[value]; }

  const Graph& graph_;
  const Facts& facts_;
  const DimClasses& dim_classes_;
  const Axes& axes_;
  Effects effects_;
  bool changed_ = false;           ///< what a body is given
  std::vector<uint8_t> produced_;  // of one node at a time, as is the next
  std::vector<ValueId> met_;
};

}  // namespace

Effects trace_effects(const Graph& graph, const Facts& facts, const DimClasses& dim_classes,
                      const Axes& axes) {
  return EffectTracer(graph, facts, dim_classes, axes).run();
}

namespace {

/// The weights of the group, and what is made of them alone: a view of the bins' positions.
std::vector<ValueId> positions_of(const Graph& graph, const DimClasses& dim_classes,
                                  const Group& group) {
  std::vector<ValueId> found;
  for (const Member& member : group.members) {
    if (!contains(found, member.value)) found.push_back(member.value);
  }
  for (size_t i = 0; i < found.size(); ++i) {
    for (const Use& use : graph.value(found[i]).uses) {
      for (const ValueId output : graph.node(use.node).outputs) {
        const bool made = output != kNone && dim_classes.from_weights(output);
        if (made && !contains(found, output)) found.push_back(output);
      }
    }
  }
  return found;
}

/// Is each element of the result made of the element at the same place of the first operand?
bool passes_places(const Node& node) {
  const OpSchema& schema = schema_of(node);
  if (schema.has(kHomogeneous)) return true;
  const notation::Line* line = compiled(schema);
  return line != nullptr && std::ranges::all_of(line->alternatives, [](const auto& form) {
           if (form.inputs.empty() || form.outputs.empty()) return false;
           const auto& x = form.inputs.front().dims;
           const auto& y = form.outputs.front().dims;
           return form.mixes.empty() &&
                  std::ranges::equal(x, y, {}, &notation::Dim::labels, &notation::Dim::labels);
         });
}

}  // namespace

NodeId maker_of_outcomes(const Graph& graph, NodeId mixing) {
  const Node& node = graph.node(mixing);
  if (has_trait(node, kOutcomes)) return mixing;
  if (!has_trait(node, kReduces) || !has_trait(node, kSums)) return kNone;
  for (const Use& use : graph.value(node.outputs.front()).uses) {
    const Node& reader = graph.node(use.node);
    const bool of_sum = use.input == 1 && reader.inputs.front() == node.inputs.front();
    if (of_sum && has_trait(reader, kDivides)) return use.node;
  }
  return kNone;
}

NodeId reader_of_outcomes(const Graph& graph, const DimClasses& dim_classes, const Group& group,
                          NodeId softmax) {
  const std::vector<ValueId> positions = positions_of(graph, dim_classes, group);
  std::vector<NodeId> reached = {softmax};
  for (size_t i = 0; i < reached.size(); ++i) {
    for (const ValueId output : graph.node(reached[i]).outputs) {
      if (output == kNone) continue;
      for (const Use& use : graph.value(output).uses) {
        const auto weighs = [&](ValueId v) { return v != kNone && contains(positions, v); };
        if (std::ranges::any_of(graph.node(use.node).inputs, weighs)) return use.node;
        const bool passes = use.input == 0 && passes_places(graph.node(use.node));
        if (passes && !contains(reached, use.node)) reached.push_back(use.node);
      }
    }
  }
  return kNone;
}

}  // namespace parsimony
