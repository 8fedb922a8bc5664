// Nodes that run subgraphs. What crosses their boundary is one value at different times, whose axes
// are the same; the nodes inside are ordinary nodes.
//
//   If    (condition)                 branches ()
//         -> results
//   Loop  (most, condition, states…)  body (turn, condition, states…)
//         -> condition, states…, scans…
//   Scan  (states…, sequences…)       body (states…, slices…)
//         -> states…, slices…
#include <algorithm>
#include <optional>

#include "parsimony/base/errors.h"
#include "parsimony/base/ranges.h"
#include "parsimony/graph/operators/builder.h"
#include "parsimony/graph/operators/factor.h"
#include "parsimony/graph/operators/families.h"

namespace parsimony::operators {
namespace {

constexpr int kBeforeStates = 2;      // of Loop: trip count and condition
constexpr int kFirstScanOfToday = 9;  // version 8 has a batch dimension of its own

/// The only body; null where there is none, as in a damaged file.
const Body* only_body(const NodeView& view) {
  const auto& bodies = view.node().bodies;
  return bodies.size() == 1 ? &view.graph().bodies[bodies[0]] : nullptr;
}

std::optional<Shape> copy_of(const Shape* shape) {
  return shape == nullptr ? std::nullopt : std::optional<Shape>(*shape);
}

int64_t at_or(const std::vector<int64_t>& list, size_t i, int64_t fallback) {
  return i < list.size() ? list[i] : fallback;
}

/// The division of Scan's operands and results into states and sequences.
struct ScanSizes {
  int states = 0;
  int sequences = 0;
  explicit ScanSizes(const NodeView& view) {
    const int64_t requested = view.attr("num_scan_inputs", 0);
    sequences = static_cast<int>(std::clamp<int64_t>(requested, 0, view.inputs()));
    states = view.inputs() - sequences;
  }
};

Shapes inside_loop(const NodeView& view) {
  Shapes shapes = {Shape{}, Shape{}};
  for (int i = kBeforeStates; i < view.inputs(); ++i) shapes.push_back(copy_of(view.in_shape(i)));
  return shapes;
}

Shapes inside_scan(const NodeView& view) {
  if (view.opset() < kFirstScanOfToday) return {};
  const ScanSizes sizes(view);
  const auto axes = view.attrs("scan_input_axes");
  Shapes shapes;
  for (int i = 0; i < sizes.states; ++i) shapes.push_back(copy_of(view.in_shape(i)));
  for (int i = 0; i < sizes.sequences; ++i) {
    auto& slice = shapes.emplace_back(copy_of(view.in_shape(sizes.states + i)));
    if (!slice) continue;
    const int axis = normal_axis(view, at_or(axes, static_cast<size_t>(i), 0), slice->size());
    slice->erase(slice->begin() + axis);
  }
  return shapes;
}

/// The branch of If that is not taken where the sizes of the network decide; null where data do.
const Body* not_taken(const NodeView& view) {
  const HostTensor* condition = view.constant(0);
  if (condition == nullptr || condition->count() != 1) return nullptr;
  const std::string_view other = condition->number(0) != 0 ? "else_branch" : "then_branch";
  for (const BodyId b : view.node().bodies) {
    if (view.graph().bodies[b].attribute == other) return &view.graph().bodies[b];
  }
  return nullptr;
}

/// Returns the shapes on which all branches that may be taken agree, else the first known ones.
Shapes out_of_if(const NodeView& view) {
  Shapes shapes(static_cast<size_t>(view.outputs()));
  const Body* passed_over = not_taken(view);
  bool first = true;
  for (const BodyId b : view.node().bodies) {
    if (&view.graph().bodies[b] == passed_over) continue;
    const auto& results = view.graph().bodies[b].outputs;
    for (size_t i = 0; i < shapes.size(); ++i) {
      const Shape* shape = i < results.size() ? view.shape(results[i]) : nullptr;
      if (first || (!shapes[i] && view.may_assume())) {
        shapes[i] = copy_of(shape);
      } else if (!view.may_assume() && (shape == nullptr || shapes[i] != *shape)) {
        shapes[i].reset();
      }
    }
    first = false;
  }
  return shapes;
}

/// States as the body leaves them. Scan outputs have one slice per iteration, whose number is not
/// known.
Shapes out_of_loop(const NodeView& view) {
  Shapes shapes;
  const Body* body = only_body(view);
  for (int i = kBeforeStates; i < view.inputs() && body != nullptr; ++i) {
    const auto state = static_cast<size_t>(i);
    const bool there = state < body->inputs.size() && state - 1 < body->outputs.size();
    const Shape* given = there ? view.shape(body->inputs[state]) : nullptr;
    const Shape* made = there ? view.shape(body->outputs[state - 1]) : nullptr;
    const bool same = given != nullptr && made != nullptr && *given == *made;
    shapes.push_back(copy_of(same || view.may_assume() ? made : nullptr));
  }
  if (!view.may_assume() || body == nullptr) return shapes;
  for (size_t i = body->inputs.size() - 1; i < body->outputs.size(); ++i) {
    auto& shape = shapes.emplace_back(copy_of(view.shape(body->outputs[i])));
    if (shape) shape->insert(shape->begin(), turns_of(view));
  }
  return shapes;
}

Shapes out_of_scan(const NodeView& view) {
  const Body* body = only_body(view);
  if (body == nullptr || view.opset() < kFirstScanOfToday) return {};
  const ScanSizes sizes(view);
  const Shape* sequence = sizes.sequences > 0 ? view.in_shape(sizes.states) : nullptr;
  const auto in_axes = view.attrs("scan_input_axes");
  const auto out_axes = view.attrs("scan_output_axes");
  Shapes shapes;
  for (size_t i = 0; i < body->outputs.size(); ++i) {
    auto& shape = shapes.emplace_back(copy_of(view.shape(body->outputs[i])));
    if (static_cast<int>(i) < sizes.states || !shape) continue;
    if (sequence == nullptr) {
      shape.reset();
      continue;
    }
    const int from = normal_axis(view, at_or(in_axes, 0, 0), sequence->size());
    const auto nth = i - static_cast<size_t>(sizes.states);
    const int to = normal_axis(view, at_or(out_axes, nth, 0), shape->size() + 1);
    shape->insert(shape->begin() + to, (*sequence)[from]);
  }
  return shapes;
}

/// kNone where a damaged file has too few.
ValueId value_at(const std::vector<ValueId>& values, int i) {
  return i >= 0 && i < std::ssize(values) ? values[static_cast<size_t>(i)] : ValueId();
}

/// A value outside of a body or inside it.
struct Place {
  ValueId value;
  int turns = kNone;  ///< the axis that has an index for every turn, where there is one
};

bool is_empty_list(const NodeView& view, ValueId value) {
  const NodeId producer = view.graph().value(value).producer;
  return producer != kNone && schema_of(view.graph().node(producer)).infer == infer_sequence_empty;
}

/// The axes of a value that is in several places, one after the other: an operand, the input of the
/// body, its result, the result of the node.
class Passage {
 public:
  explicit Passage(const NodeView& view) : view_(view), factors_(view) {}

  void join(std::vector<Place> places) {
    std::erase_if(places, [&](const Place& place) {
      return place.value == kNone || is_empty_list(view_, place.value);
    });
    for (const Place& place : places) {
      if (place.turns != kNone && view_.shape(place.value) != nullptr) {
        factors_.pin(place.value, place.turns, "its indices are turns of " + view_.node().op);
      }
    }
    const std::optional<size_t> rank = common_rank(places);
    if (!rank) {
      for (const Place& place : places) pin(place.value, "its shape is not known at every turn");
      return;
    }
    for (int d = 0; d < static_cast<int>(*rank); ++d) join_axis(places, d);
  }

  void pin(ValueId value, const std::string& reason) {
    const Shape* shape = view_.shape(value);
    for (int d = 0; shape != nullptr && d < std::ssize(*shape); ++d) factors_.pin(value, d, reason);
  }

  Factors take() { return factors_.take(); }

 private:
  /// Without the axis of the turns; empty where ranks differ or are not known.
  std::optional<size_t> common_rank(const std::vector<Place>& places) const {
    std::optional<size_t> common;
    for (const Place& place : places) {
      const Shape* shape = view_.shape(place.value);
      if (shape == nullptr) return std::nullopt;
      const size_t rank = shape->size() - (place.turns != kNone ? 1 : 0);
      if (common.value_or(rank) != rank) return std::nullopt;
      common = rank;
    }
    return common;
  }

  void join_axis(const std::vector<Place>& places, int d) {
    std::vector<std::pair<ValueId, int>> dims;
    for (const Place& place : places) {
      const std::pair dim(place.value, d + (place.turns != kNone && place.turns <= d ? 1 : 0));
      if (!contains(dims, dim)) dims.push_back(dim);  // a body may hand back what it was given
    }
    const auto size = [&](const auto& dim) { return (*view_.shape(dim.first))[dim.second]; };
    const int64_t first = size(dims.front());
    if (!std::ranges::all_of(dims, [&](const auto& dim) { return size(dim) == first; })) {
      for (const auto& [value, dim] : dims) factors_.pin(value, dim, "its size changes");
      return;
    }
    const int label = factors_.label(first);
    for (const auto& [value, dim] : dims) factors_.term(value, dim, {{label}});
  }

  const NodeView& view_;
  FactorBuilder factors_;
};

bool reads_weights(const NodeView& view) {
  const Graph& graph = view.graph();
  return std::ranges::any_of(view.node().inputs, [&](ValueId v) {
    const WeightId weight = v == kNone ? WeightId() : graph.value(v).weight;
    return weight != kNone && is_floating(graph.weight(weight).dtype) &&
           graph.weight(weight).count() > 1;
  });
}

bool reads_sizes(const NodeView& view, const OpSchema& schema) {
  if (schema.infer == infer_squeeze) return !view.attr_or_input("axes", 1);
  return schema.patch != nullptr;
}

/// Does the body fit whatever becomes of the channels that it reads? Neither a layer nor a number
/// of channels stands in it.
bool fits_any(const NodeView& view, BodyId body) {
  const Graph& graph = view.graph();
  return std::ranges::none_of(graph.nodes.ids(), [&](NodeId n) {
    const Node& node = graph.node(n);
    if (node.body != body) return false;
    const OpSchema* schema = followed_schema(node);
    return schema == nullptr || node.has_subgraph || reads_sizes(view.beside(n), *schema) ||
           reads_weights(view.beside(n));
  });
}

/// The results of a branch that is not taken with these sizes may have another shape: a Squeeze in
/// one, nothing in the other.
void join_branches(const NodeView& view, Passage& passage) {
  const Graph& graph = view.graph();
  const Body* passed_over = not_taken(view);
  for (size_t o = 0; o < view.node().outputs.size(); ++o) {
    std::vector<Place> places = {{view.output(static_cast<int>(o))}};
    for (const BodyId b : view.node().bodies) {
      const ValueId result = value_at(graph.bodies[b].outputs, static_cast<int>(o));
      const Shape* shape = view.shape(result);
      const Shape* taken = view.out_shape(static_cast<int>(o));
      if (&graph.bodies[b] != passed_over || (shape && taken && *shape == *taken)) {
        places.push_back({result});
      } else if (!fits_any(view, b)) {
        passage.pin(result, "its shape is another one in the branch that is taken");
      }
    }
    passage.join(std::move(places));
  }
}

void join_loop(const NodeView& view, const Body& body, Passage& passage) {
  const int states = std::max(0, view.inputs() - kBeforeStates);
  for (int i = 0; i < states; ++i) {
    passage.join({{view.input(kBeforeStates + i)},
                  {value_at(body.inputs, kBeforeStates + i)},
                  {value_at(body.outputs, 1 + i)},
                  {view.output(i)}});
  }
  for (int i = states; i < view.outputs(); ++i) {
    passage.join({{value_at(body.outputs, 1 + i)}, {view.output(i), 0}});
  }
}

void join_scan(const NodeView& view, const Body& body, Passage& passage) {
  const ScanSizes sizes(view);
  const auto turns = [&](const char* axes, int nth, const Shape* shape) {
    const int64_t axis = at_or(view.attrs(axes), static_cast<size_t>(nth), 0);
    return shape == nullptr ? kNone : normal_axis(view, axis, shape->size());
  };
  for (int i = 0; i < sizes.states; ++i) {
    passage.join({{view.input(i)},
                  {value_at(body.inputs, i)},
                  {value_at(body.outputs, i)},
                  {view.output(i)}});
  }
  for (int i = 0; i < sizes.sequences; ++i) {
    const int at = sizes.states + i;
    passage.join({{view.input(at), turns("scan_input_axes", i, view.in_shape(at))},
                  {value_at(body.inputs, at)}});
  }
  for (int i = sizes.states; i < view.outputs(); ++i) {
    const int nth = i - sizes.states;
    passage.join({{value_at(body.outputs, i)},
                  {view.output(i), turns("scan_output_axes", nth, view.out_shape(i))}});
  }
}

}  // namespace

Shapes shapes_inside(const NodeView& view) {
  if (!view.node().domain.empty()) return {};
  if (view.node().op == "Loop") return inside_loop(view);
  if (view.node().op == "Scan") return inside_scan(view);
  return {};
}

std::vector<std::pair<ValueId, ValueId>> carried(const NodeView& view) {
  std::vector<std::pair<ValueId, ValueId>> result;
  const Body* body = only_body(view);
  if (body == nullptr || !view.node().domain.empty()) return result;
  const bool loop = view.node().op == "Loop";
  if (!loop && view.node().op != "Scan") return result;
  const size_t first = loop ? kBeforeStates : 0;
  const size_t states = loop ? body->inputs.size() : static_cast<size_t>(ScanSizes(view).states);
  for (size_t i = first; i < std::min(states, body->inputs.size()); ++i) {
    const size_t o = loop ? i - 1 : i;
    if (o < body->outputs.size()) result.emplace_back(body->inputs[i], body->outputs[o]);
  }
  return result;
}

bool is_passed_over(const NodeView& view) {
  const BodyId body = view.node().body;
  const NodeId owner = body == kNone ? NodeId() : view.graph().bodies[body].owner;
  if (owner == kNone || view.graph().node(owner).op != "If") return false;
  return not_taken(view.beside(owner)) == &view.graph().bodies[body] && fits_any(view, body);
}

int64_t turns_of(const NodeView& view) {
  constexpr int64_t kAssumedTurns = 2;
  const HostTensor* most = view.constant(0);
  const bool told = most != nullptr && most->ints.size() == 1 && most->ints[0] > 0;
  const HostTensor* condition = view.constant(1);
  const bool goes_on = !view.has_input(1) || (condition != nullptr && condition->count() == 1 &&
                                              condition->number(0) != 0);
  return told && goes_on ? most->ints[0] : kAssumedTurns;
}

Shapes infer_control(const NodeView& view) {
  if (view.node().op == "If") return out_of_if(view);
  return view.node().op == "Loop" ? out_of_loop(view) : out_of_scan(view);
}

Factors factor_control(const NodeView& view) {
  Passage passage(view);
  if (view.node().op == "If") {
    join_branches(view, passage);
    return passage.take();
  }
  const Body* body = only_body(view);
  if (body == nullptr) throw UnsupportedError("it has no body");
  if (view.node().op == "Loop") {
    join_loop(view, *body, passage);
  } else if (view.opset() >= kFirstScanOfToday) {
    join_scan(view, *body, passage);
  } else {
    throw UnsupportedError("version 8 has an axis of its own for the batch");
  }
  return passage.take();
}

}  // namespace parsimony::operators
