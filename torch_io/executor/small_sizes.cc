#include <algorithm>
#include <exception>
#include <utility>

#include "parsimony/torch_io/executor/program_impl.h"

namespace parsimony::executor {
namespace {

/// Of the shape that a value with such a presence has in the small network; holds no memory.
at::Tensor small_like(const at::Tensor& present) {
  Ints dims;
  for (int64_t axis = 0; axis < present.dim(); ++axis) {
    at::Tensor found = present.movedim(axis, 0).reshape({present.size(axis), -1}).any(1);
    dims.push_back(found.sum().item<int64_t>());
  }
  return of_sizes(dims);
}

}  // namespace

SmallSizes::SmallSizes(const Program& program) : small_(program.names.size()) {
  for (const ValueId v : small_.ids()) {
    // What is made of a weight that was cut is data, such as a token repeated for each sample.
    const HeldWeight* held = program.held(v);
    constant_.push_back(held != nullptr && held->kept.empty());
  }
}

bool SmallSizes::computes(const Step& step) const {
  bool any = false;
  for (const ValueId v : step.node.inputs) {
    if (v == kNone || constant_[v]) continue;
    if (!small_[v].defined()) return false;
    any = true;
  }
  return any;
}

void SmallSizes::substitute(const Step& step, Call& call) const {
  if (computes(step)) return;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    const ValueId v = step.node.inputs[i];
    if (v == kNone || !small_[v].defined()) continue;
    at::Tensor small = small_[v];
    for (const auto& [operand, patch] : step.patches) {
      if (operand == i) small = patch;
    }
    const at::Tensor& whole = call.inputs[i];
    if (whole.is_floating_point() && small.sizes() == whole.sizes()) {
      call.inputs[i] = small.to(whole.scalar_type());
    }
  }
}

void SmallSizes::follow(const Step& step, const Call& call) {
  // Weights, and what is computed from them alone: the exponent of a size, cast to its type.
  const auto is_constant = [&](ValueId v) { return v == kNone || constant_[v]; };
  if (!step.node.inputs.empty() && std::ranges::all_of(step.node.inputs, is_constant)) {
    for (const ValueId v : step.node.outputs) {
      if (v != kNone) constant_[v] = true;
    }
  }
  for (const ValueId v : step.node.outputs) {
    if (v != kNone) small_[v].reset();  // of the turn before
  }
  if (step.op == nullptr) return;
  Tensors operands = call.inputs;
  if (step.op->op == "Shape" || step.op->op == "Size") {
    if (!call.presence(0).defined()) return;
    operands[0] = small_like(call.presence(0));
  } else if (computes(step)) {
    for (size_t i = 0; i < operands.size(); ++i) {
      const ValueId v = step.node.inputs[i];
      if (v != kNone && small_[v].defined()) operands[i] = small_[v];
    }
  } else {
    return;
  }
  try {
    Tensors small = step.op->kernel(call.on(std::move(operands)));
    for (size_t i = 0; i < small.size() && i < step.node.outputs.size(); ++i) {
      const ValueId v = step.node.outputs[i];
      if (v != kNone) small_[v] = std::move(small[i]);
    }
  } catch (const std::exception&) {  // a tensor in the original's shape, indexed by small sizes
  }
}

}  // namespace parsimony::executor
