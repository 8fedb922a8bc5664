#include "parsimony/training/recovery/ends.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "parsimony/speedup/fit_layers.h"
#include "parsimony/torch_io/executor/graph_module.h"

namespace parsimony::training {

std::vector<at::Tensor> small_inputs(const SmallNetwork& small, std::vector<at::Tensor> inputs) {
  const Graph& graph = small.graph();
  for (const PlanEnd& end : small.ends()) {
    if (!end.input) continue;
    for (size_t i = 0; i < graph.inputs.size(); ++i) {
      if (graph.value(graph.inputs[i]).name != end.value) continue;
      const at::Tensor keep = at::tensor(end.keep, at::kLong).to(inputs[i].device());
      inputs[i] = inputs[i].index_select(end.axis, keep);
    }
  }
  return inputs;
}

std::vector<ValueId> state_outputs(const SmallNetwork& small, const std::vector<FedBack>& states) {
  const Graph& graph = small.graph();
  std::vector<ValueId> outputs;
  for (const FedBack& state : states) {
    const auto named = [&](ValueId output) { return graph.value(output).name == state.name; };
    const auto found = std::ranges::find_if(graph.outputs, named);
    outputs.push_back(found == graph.outputs.end() ? state.output : *found);
  }
  return outputs;
}

bool begin_states(const SmallNetwork& small, const std::vector<FedBack>& states,
                  std::vector<at::Tensor>& inputs) {
  const Graph& graph = small.graph();
  bool others = false;
  for (const FedBack& state : states) {
    at::Tensor& input = inputs[state.input];
    const auto& declared = graph.value(graph.inputs[state.input]).declared;
    if (!declared || std::ssize(*declared) != input.dim()) continue;
    Shape own = input.sizes().vec();
    for (size_t d = 0; d < own.size(); ++d) {
      if ((*declared)[d] > 0) own[d] = (*declared)[d];
    }
    if (input.sizes().equals(own)) continue;
    input = at::zeros(own, input.options());
    others = true;
  }
  return others;
}

BatchSource small_feed(const SmallNetwork& small, BatchSource feed) {
  return [&small, feed = std::move(feed), module = GraphModule(nullptr),
          last = std::vector<at::Tensor>()]() mutable -> std::optional<SampleBatch> {
    std::optional<SampleBatch> batch = feed();
    if (!batch) return {};
    batch->inputs = small_inputs(small, std::move(batch->inputs));
    if (!batch->states) return batch;
    const at::NoGradGuard no_grad;
    const std::vector<FedBack>& states = *batch->states;
    if (module.is_empty()) {
      module = GraphModule(part_for(small.graph(), state_outputs(small, states)),
                           GraphModuleOptions{.trainable = false});
      module->to(batch->inputs.front().device());
    }
    if (last.empty()) begin_states(small, states, batch->inputs);
    for (size_t i = 0; i < last.size(); ++i) batch->inputs[states[i].input] = last[i];
    last = module->forward(batch->inputs);
    return batch;
  };
}

}  // namespace parsimony::training
