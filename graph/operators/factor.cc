#include "parsimony/graph/operators/factor.h"

#include <absl/container/inlined_vector.h>

#include <algorithm>
#include <cctype>
#include <utility>

#include "parsimony/base/errors.h"
#include "parsimony/graph/operators/families.h"
#include "parsimony/graph/operators/match.h"

namespace parsimony {
namespace {

void pin_value(const NodeView& view, ValueId value, const std::string& reason, Factors& factors) {
  const Shape* shape = view.shape(value);
  if (shape == nullptr) return;
  for (size_t d = 0; d < shape->size(); ++d) {
    if ((*shape)[d] > 1)
      factors.pins.push_back({value, static_cast<int>(d), 0, (*shape)[d], reason});
  }
}

/// Pins every dimension that the rule does not mention.
void pin_unnamed(const NodeView& view, Factors& factors) {
  absl::InlinedVector<std::pair<ValueId, int>, 32> named;
  for (const Term& t : factors.terms) named.emplace_back(t.value, t.dim);
  for (const Map& m : factors.maps) {
    named.emplace_back(m.a, m.a_dim);
    named.emplace_back(m.b, m.b_dim);
  }
  for (const Pin& p : factors.pins) named.emplace_back(p.value, p.dim);
  std::ranges::sort(named);
  for (const auto* side : {&view.node().inputs, &view.node().outputs}) {
    for (const ValueId value : *side) {
      const Shape* shape = value == kNone ? nullptr : view.shape(value);
      if (shape == nullptr) continue;
      for (size_t d = 0; d < shape->size(); ++d) {
        const std::pair place(value, static_cast<int>(d));
        if ((*shape)[d] <= 1 || std::ranges::binary_search(named, place)) continue;
        factors.pins.push_back({value, static_cast<int>(d), 0, (*shape)[d],
                                "an operand that the operator's rule does not follow"});
      }
    }
  }
}

/// Does the rule itself derive the shapes of the results? What a file only declares may be wrong,
/// and rules that walk over dimensions trust what they are given.
bool derives_results(const OpSchema& schema, const NodeView& view) {
  if (view.output(0) == kNone) return false;
  if (schema.infer == nullptr) return true;
  const Shapes derived = schema.infer(view);
  for (int i = 0; i < view.outputs(); ++i) {
    if (view.output(i) == kNone) continue;
    const auto at = static_cast<size_t>(i);
    if (at >= derived.size() || derived[at] != *view.out_shape(i)) return false;
  }
  return true;
}

/// Does a result have no elements, and the operator more to do with sizes than to pass each axis
/// on?
bool makes_nothing(const NodeView& view, const OpSchema& schema) {
  if (!schema.line.empty() || schema.has(kTakesApart) || schema.has(kPermutes)) return false;
  if (schema.factor == operators::factor_concat) return false;
  return std::ranges::any_of(view.node().outputs, [&](ValueId value) {
    const Shape* shape = value == kNone ? nullptr : view.shape(value);
    return shape != nullptr && element_count(*shape) == 0;
  });
}

/// Another domain may have a known operator of the same name.
std::string name_of_unknown(const Node& node) {
  return node.domain.empty() || node.domain == "torch" ? node.op : node.domain + "." + node.op;
}

}  // namespace

Factors pin_operands(const NodeView& view, const std::string& reason) {
  Factors factors;
  const auto pin = [&](const std::vector<ValueId>& values) {
    for (const ValueId value : values) {
      if (value != kNone) pin_value(view, value, reason, factors);
    }
  };
  pin(view.node().inputs);
  pin(view.node().outputs);
  for (const BodyId b : view.node().bodies) {
    pin(view.graph().bodies[b].inputs);
    pin(view.graph().bodies[b].outputs);
  }
  return factors;
}

bool joins_bodies(const Node& node) {
  return schema_of(node).factor == operators::factor_control && !node.bodies.empty();
}

Factors factor(const NodeView& view) {
  const Node& node = view.node();
  const OpSchema* schema = followed_schema(node);
  const bool has_joined = joins_bodies(node);
  if (node.has_subgraph && !has_joined) {
    return pin_operands(view, "control flow (" + node.op + ")");
  }
  if (schema == nullptr) return pin_operands(view, "unknown operator " + name_of_unknown(node));
  if (!has_joined && view.has_unknown_shape()) {
    if (operators::is_passed_over(view)) return {};
    return pin_operands(view, "the shape of an operand is not known");
  }
  if (makes_nothing(view, *schema)) return pin_operands(view, "the result is empty");
  try {
    if (!has_joined && schema->factor != nullptr && !derives_results(*schema, view)) {
      return pin_operands(view, "the shape of a result does not follow from the operands");
    }
    Factors factors =
        schema->factor != nullptr ? schema->factor(view) : factor_line(*compiled(*schema), view);
    pin_unnamed(view, factors);
    return factors;
  } catch (const Error& error) {
    return pin_operands(view,
                        std::string("the rule of ") + node.op + " does not fit: " + error.what());
  }
}

// The axes of a match: labels, their places and what pins them.
namespace {

using notation::Alternative;
using notation::Operand;

bool names_label(const std::vector<std::string>& list, const MatchedLabel& label) {
  return std::ranges::any_of(list, [&](const std::string& name) {
    // An ellipsis' labels carry their position behind its name.
    return label.name == name ||
           (label.ellipsis && label.name.size() > name.size() && label.name.starts_with(name) &&
            std::isdigit(static_cast<unsigned char>(label.name[name.size()])));
  });
}

/// Marks labels that stand in one operand only: data flows along them.
void pin_lonely(const Match& match, Factors& factors) {
  struct Seen {
    const MatchedOperand* last = nullptr;
    int operands = 0;
    bool produced = false;
  };
  absl::InlinedVector<Seen, 16> seen(factors.labels.size());
  for (const MatchedOperand& operand : match.operands) {
    for (const MatchedDim& dim : operand.dims) {
      for (const int label : dim.labels) {
        Seen& at = seen[label];
        if (at.last != &operand) ++at.operands;
        at.last = &operand;
        at.produced = at.produced || operand.output;
      }
    }
  }
  for (size_t l = 0; l < seen.size(); ++l) {
    Label& label = factors.labels[l];
    label.contracted = !seen[l].produced;
    label.window = seen[l].operands < 2 && label.pin.empty();
  }
}

/// The number that an attribute binds to `name`, which some label may not fall below.
int64_t bound_number(const Alternative& alternative, const NodeView& view,
                     const std::string& name) {
  const auto binding = std::ranges::find(alternative.bindings, name, &notation::Binding::label);
  return view.attr(binding->attribute, binding->fallback);
}

/// Is there an operand or result with more than one element that the alternative does not name? It
/// may be coupled with those that it names.
bool has_unnamed(const Alternative& alternative, const NodeView& view) {
  const auto beyond = [&](const std::vector<Operand>& named, const std::vector<ValueId>& values) {
    if (!named.empty() && named.back().variadic) return false;
    for (size_t i = named.size(); i < values.size(); ++i) {
      const Shape* shape = view.shape(values[i]);
      if (values[i] != kNone && (shape == nullptr || element_count(*shape) != 1)) return true;
    }
    return false;
  };
  return beyond(alternative.inputs, view.node().inputs) ||
         beyond(alternative.outputs, view.node().outputs);
}

}  // namespace

Factors factor_line(const notation::Line& line, const NodeView& view) {
  Factors factors;
  const auto found = match(line, view);
  if (!found) throw UnsupportedError("the operands' ranks fit no form of the operator");
  if (has_unnamed(*found->alternative, view)) {
    return pin_operands(view, "an operand or a result more than the operator's rule follows");
  }
  factors.labels.reserve(found->labels.size());
  for (const MatchedLabel& l : found->labels) {
    Label& label = factors.labels.emplace_back();
    label.name = l.name;
    label.size = std::max<int64_t>(1, l.size);
    if (l.fixed || names_label(found->alternative->pins, l)) {
      label.pin = "axis '" + l.name + "' belongs to the operator";
    }
    label.role = line.role_of(l.name);
    label.mixes = names_label(found->alternative->mixes, l);
    for (const notation::Least& least : found->alternative->least) {
      if (least.label != l.name) continue;
      label.least = std::max(label.least, bound_number(*found->alternative, view, least.number));
    }
  }
  pin_lonely(*found, factors);
  size_t dims = 0;
  for (const MatchedOperand& operand : found->operands) dims += operand.dims.size();
  factors.terms.reserve(dims);
  for (const MatchedOperand& operand : found->operands) {
    if (operand.pattern->divisor) factors.divisors.push_back(operand.value);
    for (size_t d = 0; d < operand.dims.size(); ++d) {
      Term term{operand.value, static_cast<int>(d), {}};
      for (const int label : operand.dims[d].labels) {
        if (factors.labels[label].size > 1) term.labels.push_back(label);
      }
      if (!term.labels.empty()) factors.terms.push_back(std::move(term));
    }
  }
  return factors;
}

}  // namespace parsimony
