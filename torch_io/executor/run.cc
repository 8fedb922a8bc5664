#include <ATen/core/grad_mode.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "parsimony/torch_io/executor/choices.h"
#include "parsimony/torch_io/executor/program_impl.h"
#include "parsimony/torch_io/reason.h"
#include "parsimony/torch_io/tensor.h"

namespace parsimony::executor {
namespace {

/// Converts float16 operands to float32 and returns their original type; else float.
at::ScalarType widen_halves(const Operator& op, Call& call) {
  at::ScalarType half = at::kFloat;
  for (at::Tensor& input : call.inputs) {
    if (op.own_types || !is_half(input)) continue;
    half = input.scalar_type();
    input = input.to(at::kFloat);
  }
  return half;
}

/// The CPU has few kernels for halves: they are computed as floats, and rounded after each node
/// unless values are widened.
Tensors compute(const Operator& op, Call& call) {
  const at::ScalarType half = widen_halves(op, call);
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

/// Moves operands to a common device. Nodes such as ConstantOfShape compute numbers from sizes on
/// the CPU: they move to the device of the data. Integers only are sizes, which the host reads.
void bring_together(Tensors& operands) {
  c10::Device device(c10::kCPU);
  bool any_here = false;
  bool any_number = false;
  for (const at::Tensor& x : operands) {
    if (!x.defined()) continue;
    any_number = any_number || x.is_floating_point();
    any_here = any_here || x.device().is_cpu();
    if (!x.device().is_cpu()) device = x.device();
  }
  if (!any_here || device.is_cpu()) return;
  for (at::Tensor& x : operands) {
    if (!x.defined()) continue;
    if (!any_number) x = x.cpu();
    if (x.is_floating_point() && x.dim() > 0) x = x.to(device);
  }
}

ModelError wrong_inputs(size_t expected, size_t found) {
  return ModelError("the network has ", expected, " inputs, found ", found, " tensors");
}

/// The execution of a network on its own inputs.
class Execution {
 public:
  Execution(const Program& program, const Tensors& inputs, bool training, const Observer& observer)
      : program_(program), training_(training), observer_(observer) {
    values_.resize(program.names.size());
    if (program.masked) present_.resize(program.names.size());
    if (program.masked) transposed_.resize(program.names.size());
    if (program.masked) small_.emplace(program);
    for (const ValueId v : values_.ids()) {
      const StoredWeight* stored = program.stored(v);
      if (stored != nullptr && !stored->read) values_[v] = stored->tensor;
    }
    if (inputs.size() != program_.inputs.size()) {
      throw wrong_inputs(program_.inputs.size(), inputs.size());
    }
    for (size_t i = 0; i < inputs.size(); ++i) {
      const ValueId v = program_.inputs[i];
      if (!inputs[i].defined()) {
        throw ModelError("the tensor for input ", in_quotes(program_.names[v]), " is undefined");
      }
      values_[v] = inputs[i];
    }
    for (const auto& [v, kept] : program.inputs_kept) {
      const auto sizes = values_[v].sizes();
      for (const auto& [axis, stays] : kept) {
        present_[v] = both(present_[v], along(stays, axis, std::ssize(sizes)).expand(sizes));
      }
    }
  }

  /// Returns the call with the operands loaded so far.
  Call call(const Step& step) const {
    Call call(step.node, {});
    call.training = training_;
    call.mixes = program_.mixes;
    call.widens = program_.widens;
    call.types = step.types;
    for (const ValueId v : step.node.inputs) {
      call.inputs.push_back(v == kNone ? at::Tensor() : values_[v]);
      if (!program_.masked) continue;
      call.present.push_back(v == kNone ? at::Tensor() : present_[v]);
      call.weights.push_back(cut_weight(v));
    }
    bring_together(call.inputs);
    if (small_) small_->substitute(step, call);
    if (step.chooses) choose(step, call);
    return call;
  }

  void take(const Step& step) {
    Call operands = call(step);
    if (!step.node.bodies.empty()) return keep_parts(step, branch(operands));
    Tensors results = compute(*step.op, operands);
    keep(step, operands, std::move(results));
  }

  void keep(const Step& step, const Call& call, Tensors results) {
    results.resize(step.node.outputs.size());
    Tensors present(results.size());
    if (has_absences(call) && !stays_weight(step, call)) {
      present = set_present(step, call, results);
      for (at::Tensor& each : present) {  // of an expert that leaves, for a branch that does
        if (program_.branches && each.defined() && !each.any().item<bool>()) each.reset();
      }
    }
    if (small_) small_->follow(step, call);
    Partials parts;
    for (size_t i = 0; i < results.size(); ++i) {
      parts.push_back({std::move(results[i]), std::move(present[i])});
    }
    keep_parts(step, std::move(parts));
  }

  bool computes_sizes(const Step& step) const { return small_ && small_->computes(step); }

  at::Tensor& value(ValueId v) { return values_[v]; }
  /// As in `Call`.
  at::Tensor presence_of(ValueId v) const {
    if (!program_.masked) return {};
    const StoredWeight* weight = cut_weight(v);
    return weight == nullptr ? present_[v] : weight->present();
  }

 private:
  /// Returns the weight if parts of it are absent.
  const StoredWeight* cut_weight(ValueId v) const {
    if (v == kNone) return nullptr;
    const StoredWeight* stored = program_.stored(v);
    if (stored == nullptr) stored = transposed_[v].get();
    return stored == nullptr || stored->kept.empty() ? nullptr : stored;
  }

  /// A transposed weight remains one: its presence is that of its axes, and nothing in it needs to
  /// become zero.
  bool stays_weight(const Step& step, const Call& call) {
    const StoredWeight* weight = call.weight(0);
    if (weight == nullptr || step.op->kernel != transpose) return false;
    auto turned = std::make_shared<StoredWeight>();
    for (const int64_t axis : wrapped(order_of_axes(call), index(weight->dims.size()))) {
      turned->dims.push_back(weight->dims[axis]);
      if (const at::Tensor stays = weight->flags(axis); stays.defined()) {
        turned->kept.emplace_back(std::ssize(turned->dims) - 1, stays);
      }
    }
    transposed_[step.node.outputs[0]] = std::move(turned);
    return true;
  }

  static bool has_absences(const Call& call) {
    for (size_t i = 0; i < call.weights.size(); ++i) {
      if (call.weights[i] != nullptr || call.present[i].defined()) return true;
    }
    return false;
  }

  /// Records the operands, or replaces them by those recorded from another network.
  static void choose(const Step& step, Call& call) {
    Choices* choices = Choices::current();
    for (size_t i = 0; i < call.inputs.size() && choices != nullptr; ++i) {
      at::Tensor& operand = call.inputs[i];
      if (!operand.defined() || !operand.is_floating_point()) continue;
      operand = choices->given(step.node, step.key, i, operand, call.presence(i));
    }
  }

  Partials branch(const Call& call);

  void keep_parts(const Step& step, Partials results) {
    for (size_t i = 0; i < std::min(results.size(), step.node.outputs.size()); ++i) {
      const ValueId v = step.node.outputs[i];
      if (v == kNone) continue;
      if (observer_) observer_(step.node, v, results[i].tensor);
      place(v, std::move(results[i]));
    }
    for (const ValueId v : step.frees) place(v, {});
  }

  void place(ValueId v, Partial part) {
    values_[v] = std::move(part.tensor);
    if (program_.masked) present_[v] = std::move(part.present);
  }

  /// Sets the presence of the results. Zeroes absent elements, since the next sum must not include
  /// them.
  static Tensors set_present(const Step& step, const Call& call, Tensors& results) {
    if (step.op == nullptr || step.op->presence == nullptr) {
      throw UnsupportedError(described(step.node),
                             " cannot be run on operands with absent channels");
    }
    Tensors found;
    {
      const at::NoGradGuard guard;
      found = step.op->presence(*step.op, call, results);
    }
    found.resize(results.size());
    for (size_t i = 0; i < results.size(); ++i) {
      if (step.node.outputs[i] == kNone || !found[i].defined()) continue;
      if (found[i].all().item<bool>()) {
        found[i].reset();
      } else if (results[i].is_floating_point()) {
        results[i] = results[i].masked_fill(found[i].logical_not(), 0);
      }
    }
    return found;
  }

  const Program& program_;
  bool training_;
  const Observer& observer_;
  IdVector<ValueId, at::Tensor> values_;
  IdVector<ValueId, at::Tensor> present_;
  IdVector<ValueId, std::shared_ptr<const StoredWeight>> transposed_;  ///< transposed weights
  std::optional<SmallSizes> small_;                                    ///< of masked execution
};

/// Provides streamed weights to runs during its lifetime.
class BorrowedBuffer {
 public:
  BorrowedBuffer(const Program& program, std::span<Execution> runs,
                 const std::vector<ValueId>& values)
      : runs_(runs) {
    const at::NoGradGuard guard;
    for (const ValueId v : values) {
      const StoredWeight* stored = program.stored(v);
      if (stored == nullptr || !stored->read || runs.front().value(v).defined()) continue;
      provide(v, stored->load(program.widens));
    }
  }
  BorrowedBuffer(std::span<Execution> runs, ValueId v, const at::Tensor& tensor) : runs_(runs) {
    provide(v, tensor);
  }
  ~BorrowedBuffer() {
    for (const ValueId v : provided_) {
      for (Execution& run : runs_) run.value(v).reset();
    }
  }
  BorrowedBuffer(const BorrowedBuffer&) = delete;
  BorrowedBuffer& operator=(const BorrowedBuffer&) = delete;

 private:
  void provide(ValueId v, const at::Tensor& tensor) {
    for (Execution& run : runs_) run.value(v) = tensor;
    provided_.push_back(v);
  }

  std::span<Execution> runs_;
  std::vector<ValueId> provided_;
};

/// Advances all runs step by step together, so that streamed weights are read once.
class PairedRun {
 public:
  PairedRun(const Program& program, std::span<Execution> runs) : program_(program), runs_(runs) {}

  void take(const std::vector<Step>& steps) {
    for (const Step& step : steps) {
      try {
        take(step);
      } catch (const Error&) {
        throw;
      } catch (const std::exception& error) {
        throw ModelError(described(step.node), ": ", torch_io::reason_of(error));
      }
    }
  }

  /// Returns the values of each run.
  std::vector<Tensors> results(const std::vector<ValueId>& expected) {
    const BorrowedBuffer loan(program_, runs_, expected);
    std::vector<Tensors> all(runs_.size());
    for (size_t r = 0; r < runs_.size(); ++r) {
      for (const ValueId v : expected) all[r].push_back(runs_[r].value(v));
    }
    return all;
  }

 private:
  void take(const Step& step) {
    const ValueId large = read_in_chunks(program_, step);
    if (large != kNone && !runs_.front().computes_sizes(step)) {
      take_in_chunks(step, large);
      return;
    }
    const BorrowedBuffer loan(program_, runs_, step.node.inputs);
    for (Execution& run : runs_) run.take(step);
  }

  void take_in_chunks(const Step& step, ValueId large) {
    const at::NoGradGuard guard;
    const StoredWeight& weight = *program_.stored(large);
    const BorrowedBuffer sizes(runs_, large, of_sizes(weight.dims));
    std::vector<Call> calls;
    for (const Execution& run : runs_) widen_halves(*step.op, calls.emplace_back(run.call(step)));
    Tensors results = compute_in_chunks(calls, weight);
    for (size_t r = 0; r < runs_.size(); ++r) {
      runs_[r].keep(step, calls[r], {std::move(results[r])});
    }
  }

  const Program& program_;
  std::span<Execution> runs_;
};

Partials Execution::branch(const Call& call) {
  return run_control(call, program_.bodies, [&](const BodyProgram& body, Partials inputs) {
    if (inputs.size() != body.inputs.size()) {
      throw wrong_inputs(body.inputs.size(), inputs.size());
    }
    for (size_t i = 0; i < inputs.size(); ++i) place(body.inputs[i], std::move(inputs[i]));
    PairedRun alone(program_, {this, 1});
    alone.take(body.steps);
    Tensors tensors = alone.results(body.outputs).front();
    Partials parts;
    for (size_t i = 0; i < tensors.size(); ++i) {
      parts.push_back({std::move(tensors[i]), presence_of(body.outputs[i])});
    }
    return parts;
  });
}

}  // namespace

std::vector<Tensors> run(const Program& program, const std::vector<Tensors>& inputs, bool training,
                         const Observer& observer) {
  std::vector<Tensors> outputs;
  const auto go = [&](std::span<const Tensors> some) {
    std::vector<Execution> runs;
    for (const Tensors& each : some) runs.emplace_back(program, each, training, observer);
    PairedRun together(program, runs);
    together.take(program.steps);
    for (Tensors& each : together.results(program.outputs)) outputs.push_back(std::move(each));
  };
  const bool reads = std::any_of(program.weights.begin(), program.weights.end(),
                                 [](const StoredWeight& stored) { return stored.read != nullptr; });
  const size_t at_once = reads ? inputs.size() : 1;
  for (size_t i = 0; i < inputs.size(); i += at_once) go({&inputs[i], at_once});
  return outputs;
}

namespace {

constexpr int64_t kChunk = 1 << 20;  // elements: 4 MB of floats

/// Multiplies [n rows] by [rows columns]. Absent rows count as zero.
at::Tensor product(const at::Tensor& x, const StoredWeight& weight) {
  const int64_t columns = weight.dims[1];
  const auto most = std::max<int64_t>(1, kChunk / std::max<int64_t>(1, columns));
  const Ints rows = weight.present_rows();
  at::Tensor y = at::zeros({x.size(0), columns}, x.options());
  for (auto from = rows.begin(); from != rows.end();) {
    const auto to = from + std::min<int64_t>(most, rows.end() - from);
    const Ints some(from, to);
    y.addmm_(x.index_select(1, at::tensor(some)), weight.load_rows(some));
    from = to;
  }
  return y;
}

Tensors multiply(const std::vector<Call>& calls, const StoredWeight& weight) {
  Tensors each;
  Ints sizes;
  for (const Call& call : calls) {
    each.push_back(call.in(0).reshape({-1, weight.dims[0]}));
    sizes.push_back(each.back().size(0));
  }
  Tensors results = product(at::cat(each), weight).split_with_sizes(sizes);
  for (size_t i = 0; i < calls.size(); ++i) {
    Ints dims = calls[i].in(0).sizes().vec();
    dims.back() = weight.dims[1];
    results[i] = results[i].reshape(dims);
  }
  return results;
}

Tensors take_rows(const std::vector<Call>& calls, const StoredWeight& weight) {
  Tensors results;
  for (const Call& call : calls) {
    Ints rows = call.ints_in(1);
    for (int64_t& row : rows) {
      TORCH_CHECK(row >= -weight.dims[0] && row < weight.dims[0], "index ", row, " of ",
                  weight.dims[0]);
      if (row < 0) row += weight.dims[0];
    }
    Ints dims = call.in(1).sizes().vec();
    dims.push_back(weight.dims[1]);
    results.push_back(weight.load_rows(rows).reshape(dims));
  }
  return results;
}

}  // namespace

ValueId read_in_chunks(const Program& program, const Step& step) {
  if (!program.widens || step.op == nullptr || !step.op->domain.empty()) return kNone;
  const bool gathers = step.op->op == "Gather" && Call(step.node, {}).integer("axis", 0) == 0;
  if (!gathers && step.op->op != "MatMul") return kNone;
  const ValueId matrix = step.node.inputs.at(gathers ? 0 : 1);
  const ValueId other = step.node.inputs.at(gathers ? 1 : 0);
  const StoredWeight* stored = program.stored(matrix);
  const bool can = stored != nullptr && stored->comes_in_rows() && stored->dims.size() == 2;
  return can && program.stored(other) == nullptr ? matrix : kNone;
}

Tensors compute_in_chunks(const std::vector<Call>& calls, const StoredWeight& weight) {
  return calls.front().node.op == "Gather" ? take_rows(calls, weight) : multiply(calls, weight);
}

}  // namespace parsimony::executor
