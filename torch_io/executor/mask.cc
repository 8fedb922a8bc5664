// A plan as presences of weights.
#include <ATen/core/grad_mode.h>

#include <algorithm>

#include "parsimony/graph/errors.h"
#include "parsimony/torch_io/cut.h"
#include "parsimony/torch_io/executor/errors.h"
#include "parsimony/torch_io/executor/program_impl.h"
#include "parsimony/torch_io/tensor.h"

namespace parsimony::executor {
namespace {

at::Tensor flags(int64_t size, const Ints& keep) {
  at::Tensor stays = at::zeros({size}, at::kBool);
  return stays.index_fill_(0, at::tensor(keep, at::kLong), true);
}

class Masking {
 public:
  explicit Masking(Program& program) : program_(program) {}

  /// The block's sum is that of its kept operand and zero.
  void remove(const PlanBlock& entry) {
    Step* step = program_.find(entry.add);
    if (step == nullptr || step->node.inputs.size() != 2) {
      throw errors::no_such_block(entry.add);
    }
    step->zeroed = 1 - entry.kept_input;
  }

  /// Nodes of removed blocks do not run: what they read may be absent in part, and they are not
  /// cut.
  void drop_unread() {
    IdVector<ValueId, bool> read(program_.names.size(), false);
    const auto mark = [&](ValueId v) {
      if (v != kNone) read[v] = true;
    };
    for (const ValueId v : program_.outputs) mark(v);
    drop_unread(program_.steps, read, mark);
  }

  /// A reader of a shared weight gets one of its own.
  void copy(const PlanCopy& entry, const AddWeight& add) {
    Step* step = program_.find(entry.consumer);
    const size_t input = entry.input;
    if (step == nullptr || input >= step->node.inputs.size()) {
      throw errors::no_such_weight(entry.tensor);
    }
    if (!program_.by_name.contains(entry.tensor)) {
      HeldWeight own = weight(entry.of);
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

  void zero(const PlanZeros& entry) {
    if (entry.smallest <= 0) return;
    weight(entry.tensor).edit([count = entry.smallest](const at::Tensor& whole, const HeldWeight&) {
      at::Tensor flat = whole.view(-1);
      const auto order = std::get<1>(at::sort(flat.abs(), true, 0, false));
      flat.index_fill_(0, order.narrow(0, 0, count), 0);
    });
  }

  void patch(const PlanInteger& entry) {
    if (entry.input < 0) return;
    Step* step = program_.find(entry.node);
    if (step == nullptr) return;
    step->patches.emplace_back(entry.input, torch_io::to_tensor(entry.to));
  }

  void slice(const PlanSlice& entry) {
    HeldWeight& held = weight(entry.tensor);
    const int64_t rank = index(held.dims.size());
    if (entry.axis >= rank || held.dims[entry.axis] != entry.size) {
      throw errors::slice_does_not_fit(entry.tensor, entry.axis, entry.size, held.dims);
    }
    at::Tensor stays = flags(entry.size, entry.keep);
    if (held.tensor.defined()) stays = stays.to(held.tensor.device());
    held.kept.emplace_back(entry.axis, stays);
    if (entry.role == Role::kWith) return;  // a divisor must not become zero
    held.edit(HeldWeight::RowEdit([gone = along(stays, entry.axis, rank).logical_not()](
                                      const at::Tensor& rows, const Ints& which) {
      const bool by_row = gone.size(0) > 1;
      const at::Tensor here =
          by_row ? gone.index_select(0, at::tensor(which).to(gone.device())) : gone;
      if (here.any().item<bool>()) at::Tensor(rows).masked_fill_(here, 0);
    }));
  }

  void cut(const PlanEnd& entry) {
    if (!entry.input) return;  // follows
    const auto input = std::ranges::find_if(
        program_.inputs, [&](ValueId v) { return program_.names[v] == entry.value; });
    if (input == program_.inputs.end()) throw errors::not_in_model("input", entry.value);
    program_.inputs_kept[*input].emplace_back(entry.axis, flags(entry.size, entry.keep));
  }

  /// The elements that are there, in their order, take the new values.
  void update(const TensorUpdate& entry) {
    if (entry.values.empty()) return;
    HeldWeight& held = weight(entry.tensor);
    held.own_type = true;
    held.edit([entry](const at::Tensor& whole, const HeldWeight& of) {
      torch_io::fill_present(entry.tensor, whole, of.present(), entry.values);
    });
  }

  /// The reference of exact constants: zeros in the weights, and nothing is absent.
  void zero_masked(const PlanMask& entry) {
    weight(entry.tensor).edit([entry](const at::Tensor& whole, const HeldWeight&) {
      torch_io::zero_masked(entry, whole);
    });
  }

 private:
  template <typename Mark>
  void drop_unread(std::vector<Step>& steps, const IdVector<ValueId, bool>& read,
                   const Mark& mark) {
    for (size_t s = steps.size(); s-- > 0;) {
      const Step& step = steps[s];
      const auto is_read = [&](ValueId v) { return v != kNone && read[v]; };
      if (std::none_of(step.node.outputs.begin(), step.node.outputs.end(), is_read)) {
        steps.erase(steps.begin() + static_cast<std::ptrdiff_t>(s));
        continue;
      }
      for (size_t i = 0; i < step.node.inputs.size(); ++i) {
        if (static_cast<int>(i) != step.zeroed) mark(step.node.inputs[i]);
      }
      for (const BodyId b : step.node.bodies) {
        BodyProgram& body = program_.bodies[b];
        for (const ValueId v : body.outputs) mark(v);
        drop_unread(body.steps, read, mark);
      }
    }
  }

  WeightId id_of(const std::string& name) const {
    const auto found = program_.by_name.find(name);
    if (found == program_.by_name.end()) throw errors::no_such_weight(name);
    return found->second;
  }

  HeldWeight& weight(const std::string& name) { return program_.weights[id_of(name)]; }

  Program& program_;
};

}  // namespace

void mask(Program& program, const Plan& plan, const AddWeight& add) {
  const at::NoGradGuard guard;
  Masking masking(program);
  for (const PlanBlock& entry : plan.blocks) masking.remove(entry);
  if (!plan.blocks.empty()) masking.drop_unread();
  if (plan.constants == Constants::kExact) {
    for (const PlanMask& entry : plan.masks) masking.zero_masked(entry);
    return;
  }
  if (const TensorUpdate* update = incomplete_update(plan)) throw errors::updates(update->tensor);
  for (const PlanCopy& entry : plan.copies) masking.copy(entry, add);
  for (const PlanInteger& entry : plan.integers) masking.patch(entry);
  for (const PlanZeros& entry : plan.zeros) masking.zero(entry);
  for (const PlanGroup& group : plan.groups) {
    for (const PlanSlice& entry : group.slices) masking.slice(entry);
  }
  for (const PlanEnd& entry : plan.ends) masking.cut(entry);
  for (const TensorUpdate& update : plan.updates) masking.update(update);
  program.masked = true;
  program.mixes = std::ranges::any_of(plan.groups, &PlanGroup::mixes);
}

}  // namespace parsimony::executor
