#include "tests/torch_io/script_support.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/jit/serialization/import.h>

#include <algorithm>
#include <limits>
#include <sstream>

#include "parsimony/api/prune.h"
#include "parsimony/torch_io/executor/graph_module.h"
#include "parsimony/torch_io/script/editor.h"
#include "parsimony/torch_io/script/origins_impl.h"
#include "tests/support/dump.h"

namespace parsimony::test {

namespace jit = torch::jit;

namespace {

void collect(const c10::IValue& value, std::vector<at::Tensor>& tensors) {
  if (value.isTensor()) tensors.push_back(value.toTensor());
  if (value.isTuple()) {
    for (const c10::IValue& item : value.toTupleRef().elements()) collect(item, tensors);
  }
  if (value.isList()) {
    for (const c10::IValue& item : value.toListRef()) collect(item, tensors);
  }
  if (value.isGenericDict()) {
    for (const auto& entry : value.toGenericDict()) collect(entry.value(), tensors);
  }
}

}  // namespace

jit::Module reloaded(const jit::Module& module) {
  std::stringstream stream;
  module.save(stream);
  return jit::load(stream, at::Device(at::kCPU));
}

jit::Module scripted(const std::string& source,
                     const std::vector<std::pair<std::string, at::Tensor>>& parameters) {
  jit::Module module("Net");
  for (const auto& [name, tensor] : parameters) module.register_parameter(name, tensor, false);
  module.register_attribute("training", c10::BoolType::get(), false);
  module.define(source);
  return module;
}

std::vector<InputSpec> specs_of(const std::vector<c10::IValue>& inputs) {
  std::vector<InputSpec> specs;
  for (const c10::IValue& input : inputs) {
    if (input.isTensor()) {
      specs.push_back({input.toTensor().sizes().vec(), {}});
    } else {
      specs.push_back({{}, input.toInt()});
    }
  }
  return specs;
}

std::vector<at::Tensor> run(jit::Module module, const std::vector<c10::IValue>& inputs) {
  const at::NoGradGuard no_grad;
  module.eval();
  std::vector<c10::IValue> stack;
  for (const c10::IValue& input : inputs) {
    stack.push_back(input.isTensor() ? c10::IValue(input.toTensor().clone()) : input);
  }
  std::vector<at::Tensor> outputs;
  collect(module.forward(stack), outputs);
  for (at::Tensor& output : outputs) output = output.clone();
  return outputs;
}

double relative_difference(const std::vector<at::Tensor>& found,
                           const std::vector<at::Tensor>& expected) {
  double worst = found.size() == expected.size() ? 0 : std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < std::min(found.size(), expected.size()); ++i) {
    if (found[i].sizes() != expected[i].sizes()) return std::numeric_limits<double>::infinity();
    const at::Tensor a = expected[i].to(at::kDouble);
    const at::Tensor gap = (found[i].to(at::kDouble) - a).abs();
    if (a.numel() == 0) continue;
    const double size = std::max(a.abs().max().item<double>(), 1e-30);
    worst = std::max(worst, gap.max().item<double>() / size);
  }
  return worst;
}

void mask(const torch_io::ScriptGraph& script, const Plan& plan) {
  const at::NoGradGuard no_grad;
  for (const PlanGroup& group : plan.groups) {
    for (const PlanSlice& slice : group.slices) {
      if (slice.role == Role::kWith) continue;
      std::string name = slice.tensor;
      for (const PlanCopy& copy : plan.copies) {
        if (copy.tensor == name) name = copy.of;
      }
      if (torch_io::is_synthetic(script, name)) continue;
      const auto& origin = script.origins->tensor_origins.at(name);
      if (origin.computed != nullptr) continue;
      std::vector<int64_t> removed;
      for (int64_t i = 0; i < slice.size; ++i) {
        if (!std::binary_search(slice.keep.begin(), slice.keep.end(), i)) removed.push_back(i);
      }
      if (removed.empty()) continue;
      at::Tensor source = origin.source;
      source.index_fill_(slice.axis, at::tensor(removed, at::kLong), 0);
    }
  }
}

namespace {

std::optional<double> misread(const torch_io::ScriptGraph& script, const jit::Module& module,
                              const std::vector<c10::IValue>& inputs) {
  if (!GraphModuleImpl::runs(script.graph)) return std::nullopt;
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> tensors;
  for (const c10::IValue& input : inputs) {
    tensors.push_back(input.isTensor() ? input.toTensor().clone() : at::tensor(input.toInt()));
  }
  return relative_difference(GraphModule(script.graph)->forward(tensors), run(module, inputs));
}

}  // namespace

Pruned prune(const jit::Module& module, const std::vector<c10::IValue>& inputs,
             const ScriptRequest& request) {
  const std::vector<InputSpec> specs = specs_of(inputs);
  Pruned result;
  jit::Module original = reloaded(module);
  torch_io::ScriptGraph script = torch_io::read_script(original, specs);
  result.misread = misread(script, reloaded(module), inputs);  // a run may change the module
  PruneRequest half = from_shorthand({.criterion = "l1", .ratio = request.ratio});
  half.inputs = specs;
  half.mixing = request.exact_only ? Mixing::kExact : Mixing::kAll;
  half.granularity = request.granularity;
  result.pruning = plan_pruning(script.graph, half);
  const Analysis& analysis = result.pruning.analysis;
  result.dump = dump(script.graph, &analysis.facts);
  torch_io::ScriptEditor editor(script);
  apply_plan(result.pruning.plan, script.graph, analysis.probe, editor);
  result.small = editor.edited() ? reloaded(editor.finish()) : reloaded(original);
  jit::Module masked = reloaded(module);
  mask(torch_io::read_script(masked, specs), result.pruning.plan);
  result.difference = relative_difference(run(result.small, inputs), run(masked, inputs));
  return result;
}

}  // namespace parsimony::test
