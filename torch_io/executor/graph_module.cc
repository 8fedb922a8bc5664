#include "parsimony/torch_io/executor/graph_module.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <set>
#include <utility>

#include "parsimony/graph/weights.h"
#include "parsimony/torch_io/executor/program_impl.h"
#include "parsimony/torch_io/executor/weights_impl.h"

namespace parsimony {

using executor::Program;

struct GraphModuleImpl::State {
  Program program;
  std::map<std::string, at::Tensor> weights;
  Observer observer;
  bool trainable = true;
};

namespace {

/// Returns whether each weight becomes a parameter.
IdVector<WeightId, bool> parameters_of(const Graph& graph, const GraphModuleOptions& options) {
  IdVector<WeightId, bool> result = trained_weights(graph);
  if (options.constants) result = IdVector<WeightId, bool>(graph.weights.size(), true);
  const std::set<std::string, std::less<>> arithmetic = {"Add", "Sub", "Mul", "Div",
                                                         "Pow", "Max", "Min", "Where"};
  for (const Node& node : graph.nodes) {
    const executor::Operator* op = executor::find_operator(node.domain, node.op);
    for (size_t i = 0; i < node.inputs.size() && op != nullptr; ++i) {
      if (node.inputs[i] == kNone) continue;
      const WeightId id = graph.value(node.inputs[i]).weight;
      if (id == kNone) continue;
      const bool fixed = i < 32 && ((op->fixed >> i) & 1U) != 0;
      const bool lone = graph.weight(id).count() == 1 && arithmetic.contains(node.op);
      if (fixed || (lone && options.constants)) result[id] = false;
    }
  }
  return result;
}

std::string torch_name(const std::string& name, const std::set<std::string>& taken) {
  std::string result = name.empty() ? "weight" : name;
  std::replace(result.begin(), result.end(), '.', '_');
  const std::string base = result;
  for (int i = 2; taken.contains(result); ++i) result = base + "_" + std::to_string(i);
  return result;
}

}  // namespace

GraphModuleImpl::GraphModuleImpl(const Graph& graph, const GraphModuleOptions& options)
    : torch::nn::Module("GraphModule"), state_(std::make_unique<State>()) {
  const std::vector<NodeId> refused = unsupported_nodes(graph);
  if (!refused.empty()) {
    const Node& node = graph.node(refused[0]);
    throw executor::cannot_run(node, executor::why_not(graph, node));
  }
  state_->program = Program(options.fuses ? executor::with_swish(graph) : graph);
  state_->trainable = options.trainable;
  const IdVector<WeightId, bool> is_parameter = parameters_of(graph, options);
  std::set<std::string> taken;
  for (const WeightId w : graph.weights.ids()) {
    const Weight& weight = graph.weights[w];
    if (!executor::has_tensor(weight)) continue;  // nodes that read it were rejected above
    if (options.streamed && options.streamed(weight)) {
      state_->program.weights[w].read = executor::WeightReader(graph, weight);
      continue;
    }
    at::Tensor tensor = executor::WeightReader(graph, weight).whole();
    const std::string name = torch_name(weight.name, taken);
    taken.insert(name);
    tensor = tensor.is_floating_point() && is_parameter[w]
                 ? register_parameter(name, tensor, options.trainable)
                 : register_buffer(name, tensor);
    state_->weights.emplace(weight.name, tensor);
    state_->program.weights[w].tensor = tensor;
  }
  eval();
}

GraphModuleImpl::~GraphModuleImpl() = default;

std::vector<NodeId> GraphModuleImpl::unsupported_nodes(const Graph& graph) {
  std::vector<NodeId> nodes;
  for (const NodeId n : graph.nodes.ids()) {
    if (!executor::why_not(graph, graph.nodes[n]).empty()) nodes.push_back(n);
  }
  return nodes;
}

std::vector<std::vector<at::Tensor>> GraphModuleImpl::forward_each(
    const std::vector<std::vector<at::Tensor>>& inputs) {
  return executor::run(state_->program, inputs, is_training(), state_->observer);
}

std::vector<at::Tensor> GraphModuleImpl::forward(const std::vector<at::Tensor>& inputs) {
  return forward_each({inputs}).front();
}

at::Tensor GraphModuleImpl::forward(const at::Tensor& input) {
  return forward(std::vector<at::Tensor>{input}).front();
}

void GraphModuleImpl::to(at::Device device, at::ScalarType type, bool non_blocking) {
  to(device, non_blocking);
  to(type, non_blocking);
}

void GraphModuleImpl::to(at::ScalarType type, bool non_blocking) {
  const auto convert = [&](const std::vector<at::Tensor>& tensors) {
    for (const at::Tensor& tensor : tensors) {
      if (tensor.is_floating_point()) tensor.set_data(tensor.detach().to(type, non_blocking));
    }
  };
  convert(parameters());
  convert(buffers());
}

const std::map<std::string, at::Tensor>& GraphModuleImpl::weights() const {
  return state_->weights;
}

void GraphModuleImpl::widen_halves() { state_->program.widens = true; }

void GraphModuleImpl::observe(Observer observer) { state_->observer = std::move(observer); }

void GraphModuleImpl::mask(const Plan& plan) {
  const auto add = [&](const std::string& name, const at::Tensor& of) {
    const at::Tensor copy = of.detach().clone();
    std::set<std::string> taken;
    for (const auto& item : named_parameters(false)) taken.insert(item.key());
    for (const auto& item : named_buffers(false)) taken.insert(item.key());
    const std::string own = torch_name(name, taken);
    at::Tensor tensor = of.requires_grad() || (copy.is_floating_point() && state_->trainable)
                            ? register_parameter(own, copy, state_->trainable)
                            : register_buffer(own, copy);
    state_->weights.emplace(name, tensor);
    return tensor;
  };
  executor::mask(state_->program, plan, add);
}

}  // namespace parsimony
