#include <ATen/core/grad_mode.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <utility>

#include "parsimony/torch_io/executor/choices.h"
#include "parsimony/torch_io/executor/control_impl.h"
#include "parsimony/torch_io/executor/errors.h"
#include "parsimony/torch_io/executor/program_impl.h"
#include "parsimony/torch_io/reason.h"
#include "parsimony/torch_io/tensor.h"

namespace parsimony::executor {
namespace {

bool is_half(const at::Tensor& tensor) {
  return tensor.defined() && (tensor.is_cpu()) &&
         (tensor.scalar_type() == at::kHalf || tensor.scalar_type() == at::kBFloat16);
}

/// The CPU has few kernels for halves: they are computed as floats, and rounded after each node
/// unless they are held as floats.
Tensors compute(const Operator& op, Call& call) {
  at::ScalarType half = at::kFloat;
  for (at::Tensor& input : call.inputs) {
    if (op.own_types || !is_half(input)) continue;
    half = input.scalar_type();
    input = input.to(at::kFloat);
  }
  Tensors results = op.kernel(call);
  for (at::Tensor& result : results) {
    if (call.widens && is_half(result)) {
      result = result.to(at::kFloat);
    } else if (!call.widens && half != at::kFloat && result.defined() &&
               result.scalar_type() == at::kFloat) {
      result = result.to(half);
    }
  }
  return results;
}

class Run {
 public:
  Run(const Program& program, bool training, const Observer& observer)
      : program_(program), training_(training), observer_(observer) {
    values_.resize(program.names.size());
    if (program.masked) present_.resize(program.names.size());
    if (program.masked) small_.resize(program.names.size());
    if (program.masked) constant_.resize(program.names.size());
    for (size_t v = 0; v < values_.size(); ++v) {
      const WeightId weight = program.weight_of[v];
      if (weight == kNone) continue;
      if (program.masked) constant_[v] = true;
      const HeldWeight& held = program.weights[position(weight)];
      if (held.read) continue;
      values_[v] = held.tensor;
    }
  }

  Tensors operator()(const Tensors& inputs) {
    if (inputs.size() != program_.inputs.size()) {
      throw errors::wrong_inputs(program_.inputs.size(), inputs.size());
    }
    for (size_t i = 0; i < inputs.size(); ++i) {
      const auto v = position(program_.inputs[i]);
      if (!inputs[i].defined()) throw errors::undefined_input(program_.names[v]);
      values_[v] = inputs[i];
    }
    run(program_.steps);
    return results(program_.outputs);
  }

 private:
  void run(const std::vector<Step>& steps) {
    for (const Step& step : steps) {
      try {
        read_weights(step.node.inputs);
        take(step);
        drop_weights(step.node.inputs);
      } catch (const Error&) {
        throw;
      } catch (const std::exception& error) {
        throw errors::run_failed(step.node, torch_io::reason_of(error));
      }
      for (const ValueId v : step.frees) {
        values_[position(v)].reset();
        if (program_.masked) present_[position(v)].reset();
      }
    }
  }

  Tensors results(const std::vector<ValueId>& wanted) {
    Tensors outputs;
    read_weights(wanted);
    for (const ValueId v : wanted) outputs.push_back(values_[position(v)]);
    drop_weights(wanted);
    return outputs;
  }

  /// The weight, if it is one of those that are read for each node anew.
  const HeldWeight* unread(ValueId v) const {
    if (v == kNone || program_.weight_of[position(v)] == kNone) return nullptr;
    const HeldWeight& held = program_.weights[position(program_.weight_of[position(v)])];
    return held.read ? &held : nullptr;
  }

  /// The weight, if parts of it are absent.
  const HeldWeight* cut_weight(ValueId v) const {
    if (v == kNone || program_.weight_of[position(v)] == kNone) return nullptr;
    const HeldWeight& held = program_.weights[position(program_.weight_of[position(v)])];
    return held.kept.empty() ? nullptr : &held;
  }

  void read_weights(const std::vector<ValueId>& values) {
    const at::NoGradGuard guard;
    for (const ValueId v : values) {
      const HeldWeight* held = unread(v);
      if (held == nullptr || values_[position(v)].defined()) continue;
      values_[position(v)] = held->load(program_.widens);
    }
  }

  void drop_weights(const std::vector<ValueId>& values) {
    for (const ValueId v : values) {
      if (unread(v) != nullptr) values_[position(v)].reset();
    }
  }

  void take(const Step& step) {
    Call call(step.node, {});
    call.training = training_;
    call.widens = program_.widens;
    bool absences = false;
    for (const ValueId v : step.node.inputs) {
      call.inputs.push_back(v == kNone ? at::Tensor() : values_[position(v)]);
      if (!program_.masked) continue;
      call.present.push_back(v == kNone ? at::Tensor() : present_[position(v)]);
      call.weights.push_back(cut_weight(v));
      absences = absences || call.present.back().defined() || call.weights.back() != nullptr;
    }
    if (step.zeroed >= 0) zero(call, static_cast<size_t>(step.zeroed));
    if (program_.masked && !reads_sizes_only(step)) substitute_sizes(step, call);
    if (step.chooses) choose(step, call);
    Tensors results = step.node.bodies.empty() ? compute(*step.op, call) : branch(call);
    results.resize(step.node.outputs.size());
    if (absences) set_present(step, call, results);
    if (program_.masked) set_small(step, call);
    if (program_.masked && reads_constants_only(step)) mark_constant(step);
    for (size_t i = 0; i < results.size(); ++i) {
      const ValueId v = step.node.outputs[i];
      if (v == kNone) continue;
      if (observer_) observer_(step.node, v, results[i]);
      values_[position(v)] = std::move(results[i]);
    }
  }

  /// Keeps what is chosen from, or puts what another network chose from in its place.
  static void choose(const Step& step, Call& call) {
    Choices* choices = Choices::current();
    for (size_t i = 0; i < call.inputs.size() && choices != nullptr; ++i) {
      at::Tensor& operand = call.inputs[i];
      if (!operand.defined() || !operand.is_floating_point()) continue;
      operand = choices->given(step.node, step.key, i, operand, call.presence(i));
    }
  }

  /// What a removed block would add. Its own nodes do not run.
  static void zero(Call& call, size_t operand) {
    const size_t kept = 1 - operand;
    call.inputs[operand] = at::zeros_like(call.inputs[kept]);
    if (call.present.empty()) return;
    call.present[operand] = call.presence(kept);
    call.weights[operand] = nullptr;
  }

  /// What goes into a body and comes out of it is pinned: all of it is there.
  Tensors branch(const Call& call) {
    return run_control(call, program_.bodies, [&](const BodyProgram& body, Tensors inputs) {
      if (inputs.size() != body.inputs.size()) {
        throw errors::wrong_inputs(body.inputs.size(), inputs.size());
      }
      for (size_t i = 0; i < inputs.size(); ++i) {
        values_[position(body.inputs[i])] = std::move(inputs[i]);
      }
      run(body.steps);
      return results(body.outputs);
    });
  }

  /// Absent elements become zero, whatever was computed there: the next sum must not see them.
  void set_present(const Step& step, const Call& call, Tensors& results) {
    if (step.op == nullptr || step.op->presence == nullptr) throw errors::cannot_mask(step.node);
    Tensors found;
    {
      const at::NoGradGuard guard;
      found = step.op->presence(*step.op, call, results);
    }
    for (size_t i = 0; i < results.size() && i < found.size(); ++i) {
      const ValueId v = step.node.outputs[i];
      if (v == kNone || !found[i].defined() || found[i].all().item<bool>()) continue;
      present_[position(v)] = found[i];
      if (results[i].is_floating_point()) {
        results[i] = results[i].masked_fill(found[i].logical_not(), 0);
      }
    }
  }

  /// Sizes are those of the original, for data is moved by them. What they are in the small network
  /// is computed beside, from Shape on through whatever reads nothing but sizes and weights.
  bool reads_sizes_only(const Step& step) const {
    bool any = false;
    for (const ValueId v : step.node.inputs) {
      if (v == kNone || constant_[position(v)]) continue;
      if (!small_[position(v)].defined()) return false;
      any = true;
    }
    return any;
  }

  /// Weights, and what is computed from them alone: the exponent of a size, cast to its type.
  bool reads_constants_only(const Step& step) const {
    return !step.node.inputs.empty() &&
           std::all_of(step.node.inputs.begin(), step.node.inputs.end(),
                       [&](ValueId v) { return v == kNone || constant_[position(v)]; });
  }

  void mark_constant(const Step& step) {
    for (const ValueId v : step.node.outputs) {
      if (v != kNone) constant_[position(v)] = true;
    }
  }

  /// A size that enters the arithmetic as a real number is that of the small network, or what the
  /// plan puts in its place.
  void substitute_sizes(const Step& step, Call& call) const {
    for (size_t i = 0; i < call.inputs.size(); ++i) {
      const ValueId v = step.node.inputs[i];
      if (v == kNone || !small_[position(v)].defined()) continue;
      at::Tensor small = small_[position(v)];
      for (const auto& [operand, patch] : step.patches) {
        if (operand == i) small = patch;
      }
      const at::Tensor& whole = call.inputs[i];
      if (whole.is_floating_point() && small.sizes() == whole.sizes()) {
        call.inputs[i] = small.to(whole.scalar_type());
      }
    }
  }

  void set_small(const Step& step, const Call& call) {
    Tensors operands = call.inputs;
    if (step.op == nullptr) return;
    if (step.op->op == "Shape" || step.op->op == "Size") {
      if (!call.presence(0).defined()) return;
      operands[0] = small_like(call.presence(0));
    } else if (reads_sizes_only(step)) {
      for (size_t i = 0; i < operands.size(); ++i) {
        const ValueId v = step.node.inputs[i];
        if (v != kNone && small_[position(v)].defined()) operands[i] = small_[position(v)];
      }
    } else {
      return;
    }
    try {
      const Tensors small = step.op->kernel(call.on(std::move(operands)));
      for (size_t i = 0; i < small.size() && i < step.node.outputs.size(); ++i) {
        if (step.node.outputs[i] != kNone) small_[position(step.node.outputs[i])] = small[i];
      }
    } catch (const c10::Error&) {  // a tensor in the original's shape, indexed by small sizes
    }
  }

  /// Of the shape that a value with such a presence has in the small network; holds no memory.
  static at::Tensor small_like(const at::Tensor& present) {
    Ints dims;
    for (int64_t axis = 0; axis < present.dim(); ++axis) {
      at::Tensor found = present.movedim(axis, 0).reshape({present.size(axis), -1}).any(1);
      dims.push_back(found.sum().item<int64_t>());
    }
    return at::zeros({1}).expand(dims);
  }

  const Program& program_;
  bool training_;
  const Observer& observer_;
  Tensors values_;
  Tensors present_;
  Tensors small_;               ///< of what is computed from shapes
  std::vector<bool> constant_;  ///< masked execution: computed from weights alone
};

}  // namespace

Tensors run(const Program& program, const Tensors& inputs, bool training,
            const Observer& observer) {
  return Run(program, training, observer)(inputs);
}

}  // namespace parsimony::executor
