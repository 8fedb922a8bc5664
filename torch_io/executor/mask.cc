// Applies a plan as presence of weights, and computes the sizes of the small network.
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "parsimony/graph/errors.h"
#include "parsimony/graph/operators/schema.h"
#include "parsimony/speedup/masked_values.h"
#include "parsimony/torch_io/executor/program_impl.h"
#include "parsimony/torch_io/tensor.h"

namespace parsimony::executor {
namespace {

ModelError no_such_weight(std::string_view weight) {
  return ModelError("the network has no weight ", in_quotes(weight));
}

at::Tensor flags(int64_t size, const Ints& keep) {
  at::Tensor stays = at::zeros({size}, at::kBool);
  return stays.index_fill_(0, at::tensor(keep, at::kLong), true);
}

class Masking {
 public:
  explicit Masking(Program& program) : program_(program) {}

  /// Makes the block's sum its kept operand.
  void remove(const PlanBlock& entry) {
    Step* step = step_of(entry.add);
    const auto kept = static_cast<size_t>(entry.kept_input);
    if (step == nullptr || kept >= step->node.inputs.size()) {
      throw ModelError("the network has no addition ", in_quotes(entry.add),
                       " whose block could be removed");
    }
    step->node.inputs = {step->node.inputs[kept]};
    step->node.op = "Identity";
    step->node.domain.clear();
    step->op = find_operator(step->node.domain, step->node.op);
    step->types.clear();
  }

  /// Nodes of removed blocks do not run: their operands may be partly absent without being sliced.
  void drop_unread() {
    IdVector<ValueId, bool> read(program_.names.size(), false);
    const auto mark = [&](ValueId v) {
      if (v != kNone) read[v] = true;
    };
    for (const ValueId v : program_.outputs) mark(v);
    steps_.clear();
    drop_unread(program_.steps, read, mark);
  }

  /// Gives a reader of a shared weight its own copy.
  void copy(const PlanCopy& entry, const AddWeight& add) {
    Step* step = step_of(entry.consumer);
    const size_t input = entry.input;
    if (step == nullptr || input >= step->node.inputs.size()) {
      throw no_such_weight(entry.tensor);
    }
    if (!program_.by_name.contains(entry.tensor)) {
      StoredWeight own = weight(entry.of);
      if (own.tensor.defined()) own.tensor = add(entry.tensor, own.tensor);
      const WeightId id = program_.weights.push_back(std::move(own));
      program_.weight_of.push_back(id);
      program_.names.push_back(entry.tensor);
      program_.by_name.emplace(entry.tensor, id);
    }
    const WeightId at = id_of(entry.tensor);
    const auto value = std::find(program_.weight_of.begin(), program_.weight_of.end(), at);
    step->node.inputs[input] = program_.weight_of.id_of(*value);
  }

  void patch(const PlanInteger& entry) {
    if (entry.input < 0) return;
    Step* step = step_of(entry.node);
    if (step == nullptr) return;
    step->patches.emplace_back(entry.input, torch_io::to_tensor(entry.to));
  }

  /// Kept slices are present, whether the rest becomes zero or not.
  void add(const TensorMask& mask) {
    StoredWeight& stored = weight(std::string(mask.tensor));
    for (const PlanSlice* slice : mask.slices) {
      if (slice->axis >= index(stored.dims.size()) || stored.dims[slice->axis] != slice->size) {
        throw ModelError("the plan cuts axis ", slice->axis, " of ", in_quotes(slice->tensor),
                         ", of size ", slice->size, "; the weight's shape is ",
                         to_string(stored.dims));
      }
      at::Tensor stays = flags(slice->size, slice->keep);
      if (stored.tensor.defined()) stays = stays.to(stored.tensor.device());
      stored.kept.emplace_back(slice->axis, stays);
    }
    stored.add(mask);
  }

  void cut(const PlanEnd& entry) {
    if (!entry.input) return;  // derived
    const auto input = std::ranges::find_if(
        program_.inputs, [&](ValueId v) { return program_.names[v] == entry.value; });
    if (input == program_.inputs.end()) throw errors::not_in_model("input", entry.value);
    program_.inputs_kept[*input].emplace_back(entry.axis, flags(entry.size, entry.keep));
  }

 private:
  template <typename Mark>
  void drop_unread(std::vector<Step>& steps, const IdVector<ValueId, bool>& read,
                   const Mark& mark) {
    auto kept = steps.end();
    for (size_t s = steps.size(); s-- > 0;) {
      const Step& step = steps[s];
      const auto is_read = [&](ValueId v) { return v != kNone && read[v]; };
      if (std::none_of(step.node.outputs.begin(), step.node.outputs.end(), is_read)) continue;
      std::ranges::for_each(step.node.inputs, mark);
      for (const BodyId b : step.node.bodies) {
        BodyProgram& body = program_.bodies[b];
        for (const ValueId v : body.outputs) mark(v);
        drop_unread(body.steps, read, mark);
      }
      if (--kept != steps.begin() + static_cast<std::ptrdiff_t>(s)) *kept = std::move(steps[s]);
    }
    steps.erase(steps.begin(), kept);
  }

  /// Null if there is none; of equal keys that of the main graph.
  Step* step_of(const std::string& key) {
    if (steps_.empty()) {
      for (Step& step : program_.steps) steps_.emplace(step.key, &step);
      for (BodyProgram& body : program_.bodies) {
        for (Step& step : body.steps) steps_.emplace(step.key, &step);
      }
    }
    const auto found = steps_.find(key);
    return found == steps_.end() ? nullptr : found->second;
  }

  WeightId id_of(const std::string& name) const {
    const auto found = program_.by_name.find(name);
    if (found == program_.by_name.end()) throw no_such_weight(name);
    return found->second;
  }

  StoredWeight& weight(const std::string& name) { return program_.weights[id_of(name)]; }

  Program& program_;
  std::unordered_map<std::string_view, Step*> steps_;
};

}  // namespace

void mask(Program& program, const Plan& plan, const AddWeight& add) {
  const at::NoGradGuard guard;
  Masking masking(program);
  for (const PlanBlock& entry : plan.blocks) {
    if (entry.group.empty()) masking.remove(entry);
    program.branches = program.branches || !entry.group.empty();
  }
  if (removes_blocks(plan)) masking.drop_unread();
  // In the reference of exact constants nothing is absent: its zeros are values.
  const bool exact = plan.constants == Constants::kExact;
  if (!exact) {
    if (const TensorUpdate* update = incomplete_update(plan)) {
      throw UnsupportedError("the plan changes ", in_quotes(update->tensor),
                             " but has no new values for it");
    }
    for (const PlanCopy& entry : plan.copies) masking.copy(entry, add);
    for (const PlanInteger& entry : plan.integers) masking.patch(entry);
  }
  program.plan = std::make_shared<const Plan>(plan);
  for (const TensorMask& entry : tensor_masks(*program.plan)) masking.add(entry);
  if (exact) return;
  for (const PlanEnd& entry : plan.ends) masking.cut(entry);
  program.masked = true;
  program.mixes = std::ranges::any_of(plan.groups, &PlanGroup::mixes);
}

namespace {

/// Returns a tensor of the small network's shape for this presence, without memory.
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
    // Values derived from a cut weight are data, such as a token repeated for each sample.
    const StoredWeight* stored = program.stored(v);
    constant_.push_back(stored != nullptr && stored->kept.empty());
  }
}

bool SmallSizes::is_constant(const Node& node, int input) const {
  const ValueId v = node.inputs[input];
  return v == kNone || constant_[v] || schema_of(node).type_from == input;
}

bool SmallSizes::computes(const Step& step) const {
  bool any = false;
  for (int i = 0; i < std::ssize(step.node.inputs); ++i) {
    if (is_constant(step.node, i)) continue;
    if (!small_[step.node.inputs[i]].defined()) return false;
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
  // Weights, and values computed from them alone: the exponent of a size, cast to its type.
  bool constant = !step.node.inputs.empty();
  for (int i = 0; i < std::ssize(step.node.inputs); ++i) {
    constant = constant && is_constant(step.node, i);
  }
  if (constant) {
    for (const ValueId v : step.node.outputs) {
      if (v != kNone) constant_[v] = true;
    }
  }
  for (const ValueId v : step.node.outputs) {
    if (v != kNone) small_[v].reset();  // from the previous iteration
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
