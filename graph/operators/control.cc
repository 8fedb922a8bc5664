// Nodes that run subgraphs. Values that cross their boundary are pinned; the nodes inside are
// ordinary nodes.
//
//   If    (condition)                 branches ()
//         -> results
//   Loop  (most, condition, states…)  body (turn, condition, states…)
//         -> condition, states…, scans…
//   Scan  (states…, sequences…)       body (states…, slices…)
//         -> states…, slices…
#include "parsimony/graph/operators/control.h"

#include <algorithm>
#include <optional>

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

/// How Scan's operands and results are divided.
struct ScanSizes {
  int states = 0;
  int sequences = 0;
  explicit ScanSizes(const NodeView& view) {
    const int64_t wanted = view.attr("num_scan_inputs", 0);
    sequences = static_cast<int>(std::clamp<int64_t>(wanted, 0, view.inputs()));
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

/// What all branches agree on, else the first that is known.
Shapes out_of_if(const NodeView& view) {
  Shapes shapes(static_cast<size_t>(view.outputs()));
  bool first = true;
  for (const BodyId b : view.node().bodies) {
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
  return pin_operands(view, "control flow (" + view.node().op + ")");
}

}  // namespace parsimony::operators
