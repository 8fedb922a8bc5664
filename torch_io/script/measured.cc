#include <ATen/ATen.h>

#include "parsimony/torch_io/script/interpreter_impl.h"
#include "parsimony/torch_io/script/run.h"
#include "parsimony/torch_io/tensor.h"

namespace parsimony::torch_io::script {
namespace {

namespace jit = torch::jit;

/// Zeros are the safe integers: they are an index into everything.
at::Tensor tensor_of(const InputSpec& spec) {
  const at::ScalarType type = scalar_type_of(spec.dtype);
  if (spec.value) return at::full(spec.dims, *spec.value, type);
  return at::isFloatingType(type) ? at::rand(spec.dims).to(type) : at::zeros(spec.dims, type);
}

/// What the values are in one run; not defined where they are no tensors.
std::vector<at::Tensor> observed(const jit::Module& module,
                                 const std::shared_ptr<jit::Graph>& graph, size_t count,
                                 const std::vector<InputSpec>& inputs) {
  std::vector<at::Tensor> tensors;
  for (const InputSpec& input : inputs) tensors.push_back(tensor_of(input));
  const std::vector<c10::IValue> results = run_graph(module, graph, tensors);
  std::vector<at::Tensor> found;
  for (size_t i = results.size() - count; i < results.size(); ++i) {
    found.push_back(results[i].isTensor() ? results[i].toTensor() : at::Tensor());
  }
  return found;
}

}  // namespace

Measurements measure(const jit::Module& module, const std::shared_ptr<jit::Graph>& graph,
                     const std::vector<jit::Value*>& values, const std::vector<InputSpec>& inputs) {
  const size_t results = graph->outputs().size();
  for (jit::Value* value : values) graph->registerOutput(value);
  const std::shared_ptr<jit::Graph> telling = graph->copy();
  while (graph->outputs().size() > results) graph->eraseOutput(graph->outputs().size() - 1);
  Measurements found;
  try {
    const std::vector<at::Tensor> a = observed(module, telling, values.size(), inputs);
    const std::vector<at::Tensor> b = observed(module, telling, values.size(), inputs);
    for (size_t i = 0; i < values.size(); ++i) {
      if (!a[i].defined() || !b[i].defined() || a[i].sizes() != b[i].sizes()) continue;
      found[values[i]] = {a[i].sizes().vec(), dtype_of(a[i].scalar_type())};
    }
  } catch (const std::exception&) {  // what does not run is not measured
    return {};
  }
  return found;
}

}  // namespace parsimony::torch_io::script
