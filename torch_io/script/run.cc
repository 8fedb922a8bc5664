#include "parsimony/torch_io/script/run.h"

#include <ATen/core/grad_mode.h>
#include <torch/csrc/jit/passes/tensorexpr_fuser.h>
#include <torch/csrc/jit/runtime/interpreter.h>

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "parsimony/torch_io/errors.h"
#include "parsimony/torch_io/guards.h"
#include "parsimony/torch_io/script/interpreter_impl.h"
#include "parsimony/torch_io/script/module_tensors_impl.h"
#include "parsimony/torch_io/script/origins_impl.h"
#include "parsimony/torch_io/tensor.h"
#include "parsimony/torch_io/zeroed.h"

namespace parsimony::torch_io {
namespace {

namespace jit = torch::jit;

void flatten(const c10::IValue& value, std::vector<at::Tensor>& tensors) {
  if (value.isTensor()) {
    tensors.push_back(value.toTensor());
  } else if (value.isTensorList()) {
    for (const at::Tensor& tensor : value.toTensorVector()) tensors.push_back(tensor);
  } else if (value.isTuple()) {
    for (const c10::IValue& item : value.toTupleRef().elements()) flatten(item, tensors);
  } else if (value.isGenericDict()) {
    for (const auto& entry : value.toGenericDict()) flatten(entry.value(), tensors);
  } else if (value.isList()) {
    for (const c10::IValue& item : value.toListRef()) flatten(item, tensors);
  }
}

std::vector<c10::IValue> arguments(const jit::Module& module,
                                   const std::vector<at::Tensor>& inputs) {
  return script::values_of(script::arguments_of(module, inputs.size()), inputs);
}

/// Sets evaluation mode during its lifetime.
class EvaluatingScript {
 public:
  explicit EvaluatingScript(const jit::Module& module) {
    for (jit::Module part : module.modules()) {
      if (!part.hasattr("training") || !part.is_training()) continue;
      training_.push_back(part);
      part.setattr("training", false);
    }
  }
  ~EvaluatingScript() {
    for (jit::Module& part : training_) part.setattr("training", true);
  }
  EvaluatingScript(const EvaluatingScript&) = delete;
  EvaluatingScript& operator=(const EvaluatingScript&) = delete;

 private:
  std::vector<jit::Module> training_;
};

/// Converts a module's float16 tensors to float32 during its lifetime, since the rounding of
/// float16 would hide small errors from a proof.
class WidenedScript {
 public:
  explicit WidenedScript(const jit::Module& module) {
    for (const at::Tensor& tensor : module.parameters()) widen(tensor);
    for (const at::Tensor& tensor : module.buffers()) widen(tensor);
  }
  ~WidenedScript() {
    for (auto& [tensor, half] : halves_) tensor.set_data(half);
  }
  WidenedScript(const WidenedScript&) = delete;
  WidenedScript& operator=(const WidenedScript&) = delete;

  /// Converts inputs for it.
  std::vector<at::Tensor> inputs(std::vector<at::Tensor> tensors) const {
    for (at::Tensor& tensor : tensors) {
      if (!halves_.empty() && tensor.scalar_type() == at::kHalf) tensor = tensor.to(at::kFloat);
    }
    return tensors;
  }

 private:
  void widen(at::Tensor tensor) {
    if (tensor.scalar_type() != at::kHalf || !tensor.device().is_cpu()) return;
    halves_.emplace_back(tensor, tensor.detach());
    tensor.set_data(tensor.to(at::kFloat));
  }

  std::vector<std::pair<at::Tensor, at::Tensor>> halves_;
};

/// Disables kernel fusion in the process during its lifetime: libtorch 2.6 compiles some kernels
/// for longer than ten minutes.
class Unfused {
 public:
  Unfused() { jit::setTensorExprFuserEnabled(false); }
  ~Unfused() { jit::setTensorExprFuserEnabled(fuses_); }
  Unfused(const Unfused&) = delete;
  Unfused& operator=(const Unfused&) = delete;

 private:
  bool fuses_ = jit::tensorExprFuserEnabled();
};

/// The state in which every program runs.
class Circumstances {
 public:
  explicit Circumstances(const jit::Module& module)
      : evaluating_(module), state_(module.buffers()), widened_(module) {}

  std::vector<at::Tensor> inputs(const std::vector<at::Tensor>& tensors) const {
    return widened_.inputs(tensors);
  }

 private:
  at::NoGradGuard no_grad_;
  Unfused unfused_;
  EvaluatingScript evaluating_;
  Preserved state_;
  WidenedScript widened_;
};

}  // namespace

TorchNetwork script_run(const jit::Module& module) {
  TorchNetwork network = [module =
                              jit::Module(module)](const std::vector<at::Tensor>& inputs) mutable {
    const Circumstances around(module);
    std::vector<at::Tensor> outputs;
    flatten(module.forward(arguments(module, around.inputs(inputs))), outputs);
    return outputs;
  };
  return network.timed_by(
      [module](const std::vector<at::Tensor>& inputs) { return bound_script(module, inputs); });
}

std::vector<c10::IValue> run_graph(const jit::Module& module,
                                   const std::shared_ptr<jit::Graph>& graph,
                                   const std::vector<at::Tensor>& inputs) {
  const Circumstances around(module);
  const auto& schema = module.get_method("forward").function().getSchema().arguments();
  jit::Stack stack{module._ivalue()};
  for (c10::IValue& argument : arguments(module, around.inputs(inputs))) {
    stack.push_back(std::move(argument));
  }
  for (size_t i = stack.size(); i < schema.size(); ++i) {
    stack.push_back(schema[i].default_value().value_or(c10::IValue()));
  }
  const jit::Code code(graph, "forward");
  jit::InterpreterState(code).run(stack);
  return stack;
}

TorchNetwork::Bound bound_script(const jit::Module& module, const std::vector<at::Tensor>& inputs) {
  struct State {
    State(const jit::Module& of, const std::vector<at::Tensor>& inputs)
        : module(of), given(arguments(of, inputs)), evaluating(of), preserved(of.buffers()) {}

    jit::Module module;
    std::vector<c10::IValue> given;
    EvaluatingScript evaluating;
    Preserved preserved;
  };
  return [state = std::make_shared<State>(module, inputs)] {
    const at::NoGradGuard no_grad;
    const Unfused unfused;
    std::vector<at::Tensor> outputs;
    flatten(state->module.forward(state->given), outputs);
    return outputs;
  };
}

TorchNetwork as_written(TorchNetwork network) {
  return [network = std::move(network)](const std::vector<at::Tensor>& inputs) {
    const AsWritten guard;
    return network(inputs);
  };
}

bool has_all(const ScriptGraph& script, const Plan& plan) {
  return std::ranges::none_of(plan.groups, [&](const PlanGroup& group) {
    return std::ranges::any_of(
        group.slices, [&](const PlanSlice& slice) { return is_computed(script, slice.tensor); });
  });
}

TorchNetwork zeroed_run(const jit::Module& module, const ScriptGraph& script, const Plan& plan) {
  NetworkTensors tensors;
  std::map<std::string, at::Tensor> synthetic;
  for (const Weight& weight : script.graph.weights) {
    if (is_synthetic(script, weight.name)) synthetic[weight.name] = to_tensor(weight);
  }
  tensors.find = [origins = script.origins, synthetic](const std::string& name) {
    if (const auto made = synthetic.find(name); made != synthetic.end()) return made->second;
    const auto origin = origins->tensor_origins.find(name);
    if (origin == origins->tensor_origins.end()) throw errors::unknown_tensor(name);
    const script::TensorOrigin& held = origin->second;
    if (held.source.defined() && held.source.is_complex()) return at::view_as_real(held.source);
    return held.source;
  };
  script::for_each_tensor(module, [&](const at::Tensor& tensor) { tensors.all.push_back(tensor); });
  return [run = script_run(module), plan, tensors](const std::vector<TorchNetwork::List>& inputs) {
    const Zeroed zeroed(plan, tensors);
    return run.each(inputs);
  };
}

}  // namespace parsimony::torch_io
