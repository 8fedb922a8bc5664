#include "parsimony/torch_io/optimizer.h"

#include <torch/optim/adagrad.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/lbfgs.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/sgd.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <typeinfo>
#include <utility>

#include "parsimony/base/errors.h"
#include "parsimony/graph/slice.h"
#include "parsimony/torch_io/cut.h"

namespace parsimony {
namespace {

namespace optim = torch::optim;

using State = optim::OptimizerParamState;
using StateTensors = std::vector<at::Tensor*>;
using Cuts = std::map<std::string, std::vector<AxisKeep>>;

StateTensors tensors_in(optim::SGDParamState& s) { return {&s.momentum_buffer()}; }
StateTensors tensors_in(optim::AdamParamState& s) {
  return {&s.exp_avg(), &s.exp_avg_sq(), &s.max_exp_avg_sq()};
}
StateTensors tensors_in(optim::AdamWParamState& s) {
  return {&s.exp_avg(), &s.exp_avg_sq(), &s.max_exp_avg_sq()};
}
StateTensors tensors_in(optim::RMSpropParamState& s) {
  return {&s.square_avg(), &s.momentum_buffer(), &s.grad_avg()};
}
StateTensors tensors_in(optim::AdagradParamState& s) { return {&s.sum()}; }

/// An optimizer whose state has one or several tensors of each parameter's shape.
struct Kind {
  std::string_view name;
  bool (*matches)(const optim::Optimizer& optimizer);
  /// Returns none if the state is not of this optimizer.
  StateTensors (*tensors)(State& state);
};

template <typename Optimizer, typename ParamState>
constexpr Kind kind(std::string_view name) {
  return {name,
          [](const optim::Optimizer& optimizer) {
            return dynamic_cast<const Optimizer*>(&optimizer) != nullptr;
          },
          [](State& state) {
            auto* const typed = dynamic_cast<ParamState*>(&state);
            return typed == nullptr ? StateTensors{} : tensors_in(*typed);
          }};
}

constexpr std::string_view kLbfgs = "LBFGS";
constexpr std::array kKinds = {
    kind<optim::SGD, optim::SGDParamState>("SGD"),
    kind<optim::Adam, optim::AdamParamState>("Adam"),
    kind<optim::AdamW, optim::AdamWParamState>("AdamW"),
    kind<optim::RMSprop, optim::RMSpropParamState>("RMSprop"),
    kind<optim::Adagrad, optim::AdagradParamState>("Adagrad"),
};

const Kind* kind_of(const optim::Optimizer& optimizer) {
  const auto* const found = std::find_if(kKinds.begin(), kKinds.end(),
                                         [&](const Kind& one) { return one.matches(optimizer); });
  return found == kKinds.end() ? nullptr : found;
}

UnsupportedError unknown_optimizer() {
  std::string known;
  for (const Kind& one : kKinds) known += (known.empty() ? "" : ", ") + std::string(one.name);
  return UnsupportedError("unsupported optimizer type; supported are ", known, " and ", kLbfgs);
}

at::Tensor* place_of(optim::Optimizer& optimizer, const at::Tensor& parameter) {
  for (optim::OptimizerParamGroup& group : optimizer.param_groups()) {
    for (at::Tensor& held : group.params()) {
      if (held.unsafeGetTensorImpl() == parameter.unsafeGetTensorImpl()) return &held;
    }
  }
  return nullptr;
}

bool becomes(const at::Tensor& state, const ReplacedParameter& parameter) {
  const Shape dims = state.sizes().vec();
  for (const AxisKeep& axis : parameter.axes) {
    if (axis.axis < 0 || axis.axis >= state.dim() || state.size(axis.axis) != axis.size) {
      return false;
    }
  }
  return at::IntArrayRef(sliced(dims, parameter.axes)) == parameter.after.sizes();
}

struct Change {
  at::Tensor* place;
  at::Tensor value;
};

/// Returns the changes of one parameter's state.
std::vector<Change> changes_of(const Kind& kind, State& state, const ReplacedParameter& parameter) {
  std::vector<Change> changes;
  const StateTensors tensors = kind.tensors(state);
  if (tensors.empty()) {
    throw UnsupportedError("parameter ", in_quotes(parameter.name), ": its state is not that of ",
                           kind.name);
  }
  for (at::Tensor* const tensor : tensors) {
    if (!tensor->defined() || tensor->sizes() == parameter.after.sizes()) continue;
    if (!becomes(*tensor, parameter)) {
      throw ModelError("parameter ", in_quotes(parameter.name),
                       ": the optimizer's state has shape ", to_string(tensor->sizes().vec()),
                       ", which neither matches the parameter's ",
                       to_string(parameter.after.sizes().vec()), " nor does so after slicing");
    }
    changes.push_back({tensor, torch_io::cut(parameter.name, *tensor, parameter.axes)});
  }
  return changes;
}

/// Creates an LBFGS that was never run, with the same parameters and options: after runs `state`
/// could be cleared, but not the number of elements that it has counted.
CarriedOver restart(optim::LBFGS& lbfgs) {
  const auto& options = static_cast<const optim::LBFGSOptions&>(lbfgs.defaults());
  optim::LBFGS fresh(lbfgs.param_groups(), options);
  std::destroy_at(&lbfgs);
  std::construct_at(&lbfgs, std::move(fresh));
  return {0, {"LBFGS: its state spans all parameters, so it was reset"}};
}

bool has_state_of_other_size(const optim::LBFGS& lbfgs) {
  int64_t elements = 0;
  for (const at::Tensor& parameter : lbfgs.param_groups().front().params()) {
    elements += parameter.numel();
  }
  return std::any_of(lbfgs.state().begin(), lbfgs.state().end(), [&](const auto& entry) {
    const auto* const state = dynamic_cast<const optim::LBFGSParamState*>(entry.second.get());
    return state == nullptr || state->prev_flat_grad().numel() != elements;
  });
}

void take_place(optim::Optimizer& optimizer, const ReplacedParameter& parameter) {
  if (parameter.before.is_same(parameter.after)) return;
  *place_of(optimizer, parameter.before) = parameter.after;
  auto& states = optimizer.state();
  const auto state = states.find(parameter.before.unsafeGetTensorImpl());
  if (state == states.end()) return;
  std::unique_ptr<State> moved = std::move(state->second);
  states.erase(state);
  states[parameter.after.unsafeGetTensorImpl()] = std::move(moved);
}

/// Requires that the optimizer has all of `parameters`.
CarriedOver carry(optim::Optimizer& optimizer, std::span<const ReplacedParameter> parameters) {
  auto* const lbfgs =
      typeid(optimizer) == typeid(optim::LBFGS) ? static_cast<optim::LBFGS*>(&optimizer) : nullptr;
  const Kind* const kind = kind_of(optimizer);
  if (lbfgs == nullptr && kind == nullptr && !optimizer.state().empty()) throw unknown_optimizer();
  std::vector<Change> changes;
  if (kind != nullptr) {
    for (const ReplacedParameter& parameter : parameters) {
      const auto state = optimizer.state().find(parameter.before.unsafeGetTensorImpl());
      if (state == optimizer.state().end()) continue;
      for (Change& change : changes_of(*kind, *state->second, parameter)) {
        changes.push_back(std::move(change));
      }
    }
  }
  for (const Change& change : changes) *change.place = change.value;
  for (const ReplacedParameter& parameter : parameters) take_place(optimizer, parameter);
  if (lbfgs != nullptr && has_state_of_other_size(*lbfgs)) return restart(*lbfgs);
  return {static_cast<int>(changes.size()), {}};
}

}  // namespace

CarriedOver carry_over(optim::Optimizer& optimizer, const Plan& plan,
                       const torch::nn::Module& module) {
  std::vector<NamedParameter> parameters;
  for (const auto& p : module.named_parameters()) parameters.emplace_back(p.key(), p.value());
  return carry_over(optimizer, plan, parameters);
}

CarriedOver carry_over(optim::Optimizer& optimizer, const Plan& plan,
                       std::span<const NamedParameter> parameters) {
  Cuts cuts;
  for (TensorCut& cut : cuts_of(plan)) cuts.emplace(cut.tensor, std::move(cut.axes));
  std::vector<ReplacedParameter> held;
  std::map<const c10::TensorImpl*, size_t> index;  // a parameter may have several names
  for (const auto& [name, parameter] : parameters) {
    if (place_of(optimizer, parameter) == nullptr) continue;
    const auto [known, is_new] = index.emplace(parameter.unsafeGetTensorImpl(), held.size());
    if (is_new) held.push_back({name, parameter, parameter, {}});
    std::vector<AxisKeep>& axes = held[known->second].axes;
    if (axes.empty()) axes = std::move(cuts[name]);
  }
  CarriedOver result = carry(optimizer, held);
  if (held.empty()) {
    result.notes.emplace_back("the optimizer has no parameter of this module; nothing was changed");
  }
  return result;
}

CarriedOver carry_over(optim::Optimizer& optimizer, std::span<const ReplacedParameter> parameters) {
  for (const ReplacedParameter& parameter : parameters) {
    if (place_of(optimizer, parameter.before) == nullptr) {
      throw ModelError("parameter ", in_quotes(parameter.name), ": the optimizer does not have it");
    }
  }
  return carry(optimizer, parameters);
}

}  // namespace parsimony
