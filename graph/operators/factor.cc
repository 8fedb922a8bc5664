#include "parsimony/graph/operators/factor.h"

#include <absl/container/inlined_vector.h>

#include <algorithm>
#include <utility>

#include "parsimony/base/errors.h"
#include "parsimony/graph/operators/control.h"
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

bool makes_nothing(const NodeView& view) {
  return std::ranges::any_of(view.node().outputs, [&](ValueId value) {
    const Shape* shape = value == kNone ? nullptr : view.shape(value);
    return shape != nullptr && element_count(*shape) == 0;
  });
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

Factors factor(const NodeView& view) {
  const Node& node = view.node();
  const OpSchema* schema = followed_schema(node);
  const bool joins_bodies =
      schema != nullptr && schema->factor == operators::factor_control && !node.bodies.empty();
  if (node.has_subgraph && !joins_bodies) {
    return pin_operands(view, "control flow (" + node.op + ")");
  }
  if (schema == nullptr) return pin_operands(view, "unknown operator " + node.op);
  if (!joins_bodies && view.has_unknown_shape()) {
    if (operators::is_passed_over(view)) return {};
    return pin_operands(view, "the shape of an operand is not known");
  }
  if (makes_nothing(view)) return pin_operands(view, "the result is empty");
  try {
    if (!joins_bodies && schema->factor != nullptr && !derives_results(*schema, view)) {
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

}  // namespace parsimony
