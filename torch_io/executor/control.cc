#include <algorithm>
#include <limits>
#include <utility>

#include "parsimony/torch_io/executor/program_impl.h"

namespace parsimony::executor {
namespace {

constexpr int kFirstScanOfToday = 9;  // version 8 has an additional batch dimension

bool is_true(const at::Tensor& flag) { return flag.item<bool>(); }

const BodyProgram& body_of(const Call& call, const IdVector<BodyId, BodyProgram>& bodies,
                           std::string_view attribute) {
  for (const BodyId b : call.node.bodies) {
    if (bodies[b].attribute == attribute) return bodies[b];
  }
  call.unsupported("it has no attribute " + std::string(attribute));
}

Partial operand(const Call& call, size_t i) { return {call.in(i), call.presence(i)}; }

/// Stacks the results of the iterations along a new axis.
Partial stacked(const Partials& turns, int64_t axis) {
  Tensors tensors;
  Tensors present;
  bool whole = true;
  for (const Partial& turn : turns) {
    tensors.push_back(turn.tensor);
    whole = whole && !turn.present.defined();
  }
  if (whole) return {at::stack(tensors, axis)};
  for (const Partial& turn : turns) {
    const bool all = !turn.present.defined();
    present.push_back(all ? at::ones_like(turn.tensor, at::kBool) : turn.present);
  }
  return {at::stack(tensors, axis), at::stack(present, axis)};
}

Partial slice(const Partial& sequence, int64_t axis, int64_t at) {
  const bool whole = !sequence.present.defined();
  return {sequence.tensor.select(axis, at),
          whole ? at::Tensor() : sequence.present.select(axis, at)};
}

Partials branch(const Call& call, const IdVector<BodyId, BodyProgram>& bodies, const RunBody& run) {
  return run(body_of(call, bodies, is_true(call.in(0)) ? "then_branch" : "else_branch"), {});
}

/// The body maps (iteration, condition, carried…) to (condition, carried…, scanned…). Scanned
/// values are stacked along a new first axis.
Partials loop(const Call& call, const BodyProgram& body, const RunBody& run) {
  const int64_t most =
      call.has_in(0) ? call.in(0).item<int64_t>() : std::numeric_limits<int64_t>::max();
  const size_t carried = call.inputs.size() - std::min<size_t>(2, call.inputs.size());
  bool goes_on = !call.has_in(1) || is_true(call.in(1));
  Partials state;
  for (size_t i = 0; i < carried; ++i) state.push_back(operand(call, 2 + i));
  std::vector<Partials> scanned(call.outputs() - std::min(carried, call.outputs()));
  for (int64_t i = 0; i < most && goes_on; ++i) {
    Partials inputs = {{at::scalar_tensor(i, at::kLong)}, {at::scalar_tensor(goes_on, at::kBool)}};
    inputs.insert(inputs.end(), state.begin(), state.end());
    Partials outputs = run(body, std::move(inputs));
    if (outputs.size() < 1 + carried + scanned.size())
      call.unsupported("its body has too few outputs");
    goes_on = is_true(outputs[0].tensor);
    std::move(outputs.begin() + 1, outputs.begin() + 1 + index(carried), state.begin());
    for (size_t s = 0; s < scanned.size(); ++s) {
      scanned[s].push_back(std::move(outputs[1 + carried + s]));
    }
  }
  for (const Partials& turns : scanned) {
    state.push_back(turns.empty() ? Partial{at::empty({0})} : stacked(turns, 0));
  }
  return state;
}

int64_t at_or(const Ints& list, size_t i, int64_t fallback) {
  return i < list.size() ? list[i] : fallback;
}

/// The body maps (states…, slices…) to (states…, slices…); each iteration takes one index of the
/// sequences' axes.
Partials scan(const Call& call, const BodyProgram& body, const RunBody& run) {
  const size_t sequences = call.integer("num_scan_inputs", 0);
  if (sequences == 0 || sequences > call.inputs.size())
    call.unsupported("num_scan_inputs does not match its inputs");
  const size_t carried = call.inputs.size() - sequences;
  const Ints in_axes = call.integers("scan_input_axes");
  const Ints in_back = call.integers("scan_input_directions");
  const Ints out_axes = call.integers("scan_output_axes");
  const Ints out_back = call.integers("scan_output_directions");
  Partials state;
  for (size_t i = 0; i < carried; ++i) state.push_back(operand(call, i));
  const auto axis_of = [&](size_t s) {
    return wrapped(at_or(in_axes, s, 0), call.in(carried + s).dim());
  };
  const int64_t iterations = call.in(carried).size(axis_of(0));
  std::vector<Partials> scanned(body.outputs.size() - std::min(carried, body.outputs.size()));
  for (int64_t i = 0; i < iterations; ++i) {
    Partials inputs = state;
    for (size_t s = 0; s < sequences; ++s) {
      const int64_t at = at_or(in_back, s, 0) != 0 ? iterations - 1 - i : i;
      inputs.push_back(slice(operand(call, carried + s), axis_of(s), at));
    }
    Partials outputs = run(body, std::move(inputs));
    std::move(outputs.begin(), outputs.begin() + index(carried), state.begin());
    for (size_t s = 0; s < scanned.size(); ++s) {
      scanned[s].push_back(std::move(outputs[carried + s]));
    }
  }
  for (size_t s = 0; s < scanned.size(); ++s) {
    if (scanned[s].empty()) call.unsupported("sequences of length 0 are not supported");
    if (at_or(out_back, s, 0) != 0) std::reverse(scanned[s].begin(), scanned[s].end());
    const int64_t rank = scanned[s].front().tensor.dim() + 1;
    state.push_back(stacked(scanned[s], wrapped(at_or(out_axes, s, 0), rank)));
  }
  return state;
}

}  // namespace

bool is_control(const Node& node) {
  if (!node.domain.empty() || node.bodies.empty()) return false;
  if (node.op == "Scan") return node.opset >= kFirstScanOfToday;
  return node.op == "If" || node.op == "Loop";
}

Partials run_control(const Call& call, const IdVector<BodyId, BodyProgram>& bodies,
                     const RunBody& run) {
  if (call.node.op == "If") return branch(call, bodies, run);
  const BodyProgram& body = body_of(call, bodies, "body");
  return call.node.op == "Loop" ? loop(call, body, run) : scan(call, body, run);
}

}  // namespace parsimony::executor
