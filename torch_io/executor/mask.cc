// A plan as presences of weights.
#include <ATen/core/grad_mode.h>

#include <algorithm>

#include "parsimony/speedup/folds.h"
#include "parsimony/torch_io/cut.h"
#include "parsimony/torch_io/executor/errors.h"
#include "parsimony/torch_io/executor/program_impl.h"
#include "parsimony/torch_io/tensor.h"

namespace parsimony::executor {
namespace {

class Masking {
 public:
  Masking(Program& program, const std::map<std::string, at::Tensor>& weights)
      : program_(program), weights_(weights) {}

  /// The block's sum is that of its kept operand and zero.
  void remove(const PlanBlock& entry) {
    const auto step = std::find_if(program_.steps.begin(), program_.steps.end(),
                                   [&](const Step& s) { return s.key == entry.add; });
    if (step == program_.steps.end() || step->node.inputs.size() != 2) {
      throw errors::no_such_block(entry.add);
    }
    step->zeroed = 1 - entry.kept_input;
  }

  /// Nodes of removed blocks do not run: what they read may be absent in part, and they are not
  /// cut.
  void drop_unread() {
    std::vector<bool> read(program_.names.size(), false);
    const auto mark = [&](ValueId v) {
      if (v != kNone) read[position(v)] = true;
    };
    for (const ValueId v : program_.outputs) mark(v);
    for (size_t s = program_.steps.size(); s-- > 0;) {
      const Step& step = program_.steps[s];
      const auto is_read = [&](ValueId v) { return v != kNone && read[position(v)]; };
      if (std::none_of(step.node.outputs.begin(), step.node.outputs.end(), is_read)) {
        program_.steps.erase(program_.steps.begin() + static_cast<std::ptrdiff_t>(s));
        continue;
      }
      for (size_t i = 0; i < step.node.inputs.size(); ++i) {
        if (static_cast<int>(i) != step.zeroed) mark(step.node.inputs[i]);
      }
      for (const BodyProgram& body : step.bodies) {
        for (const ValueId v : body.captures) mark(v);
      }
    }
  }

  /// A reader of a shared weight gets one of its own.
  void copy(const PlanCopy& entry, const AddWeight& add) {
    const auto step = std::find_if(program_.steps.begin(), program_.steps.end(),
                                   [&](const Step& s) { return s.key == entry.consumer; });
    const auto input = static_cast<size_t>(entry.input);
    if (step == program_.steps.end() || input >= step->node.inputs.size()) {
      throw errors::no_such_weight(entry.tensor);
    }
    if (!weights_.contains(entry.tensor)) {
      const at::Tensor own = add(entry.tensor, tensor(entry.of));
      program_.weight_of.push_back(static_cast<WeightId>(program_.weights.size()));
      program_.names.push_back(entry.tensor);
      program_.weights.push_back(own);
      program_.presence.emplace_back();
    }
    const auto at = static_cast<WeightId>(weight(entry.tensor));
    const auto value = std::find(program_.weight_of.begin(), program_.weight_of.end(), at);
    step->node.inputs[input] = static_cast<ValueId>(value - program_.weight_of.begin());
  }

  void zero(const PlanZeros& entry) {
    if (entry.smallest <= 0) return;
    at::Tensor flat = tensor(entry.tensor).detach().view(-1);
    const auto order = std::get<1>(at::sort(flat.abs(), true, 0, false));
    flat.index_fill_(0, order.narrow(0, 0, entry.smallest), 0);
  }

  void patch(const PlanInteger& entry) {
    if (entry.input < 0) return;
    for (Step& step : program_.steps) {
      if (step.key != entry.node) continue;
      step.patches.emplace_back(static_cast<size_t>(entry.input), torch_io::to_tensor(entry.to));
    }
  }

  void slice(const PlanSlice& entry) {
    const at::Tensor whole = tensor(entry.tensor).detach();
    if (entry.axis >= whole.dim() || whole.size(entry.axis) != entry.size) {
      throw errors::slice_does_not_fit(entry.tensor, entry.axis, entry.size, whole.sizes().vec());
    }
    at::Tensor kept = at::zeros({entry.size}, at::kBool);
    kept.index_fill_(0, at::tensor(entry.keep, at::kLong), true);
    kept = along(kept.to(whole.device()), entry.axis, whole.dim()).expand(whole.sizes());
    at::Tensor& present = program_.presence[weight(entry.tensor)];
    present = present.defined() ? present.logical_and(kept) : kept;
    if (entry.role != "with") {
      at::Tensor(whole).masked_fill_(kept.logical_not(), 0);
    }
  }

  /// The elements that are there, in their order, take the new values.
  void fold(const PlanFold& entry) {
    if (entry.values.empty()) return;
    const at::Tensor whole = tensor(entry.tensor).detach();
    torch_io::fill_present(entry.tensor, whole, program_.presence[weight(entry.tensor)],
                           entry.values);
  }

 private:
  const at::Tensor& tensor(const std::string& name) const {
    const auto found = weights_.find(name);
    if (found == weights_.end()) throw errors::no_such_weight(name);
    return found->second;
  }

  size_t weight(const std::string& name) const {
    const at::Tensor& wanted = tensor(name);
    const auto same = std::find_if(program_.weights.begin(), program_.weights.end(),
                                   [&](const at::Tensor& t) { return t.is_same(wanted); });
    return static_cast<size_t>(same - program_.weights.begin());
  }

  Program& program_;
  const std::map<std::string, at::Tensor>& weights_;
};

/// The reference of exact constants: zeros in the weights, and nothing is absent.
void zero_masked(const Plan& plan, const std::map<std::string, at::Tensor>& weights) {
  for (const PlanMask& entry : plan.masks) {
    const auto found = weights.find(entry.tensor);
    if (found == weights.end()) throw errors::no_such_weight(entry.tensor);
    torch_io::zero_masked(entry, found->second);
  }
}

}  // namespace

void mask(Program& program, const Plan& plan, const std::map<std::string, at::Tensor>& weights,
          const AddWeight& add) {
  const at::NoGradGuard guard;
  Masking masking(program, weights);
  for (const PlanBlock& entry : plan.blocks) masking.remove(entry);
  if (!plan.blocks.empty()) masking.drop_unread();
  if (plan.constants == Constants::kExact) return zero_masked(plan, weights);
  if (const PlanFold* fold = unexplained_fold(plan)) throw errors::folds(fold->tensor);
  for (const PlanCopy& entry : plan.copies) masking.copy(entry, add);
  for (const PlanInteger& entry : plan.integers) masking.patch(entry);
  for (const PlanZeros& entry : plan.zeros) masking.zero(entry);
  for (const PlanGroup& group : plan.groups) {
    for (const PlanSlice& entry : group.slices) masking.slice(entry);
  }
  for (const PlanFold& fold : plan.folds) masking.fold(fold);
  program.masked = true;
}

}  // namespace parsimony::executor
