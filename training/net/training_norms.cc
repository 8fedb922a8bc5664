#include "parsimony/training/net/training_norms.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "parsimony/graph/operators/schema.h"
#include "parsimony/torch_io/guards.h"
#include "parsimony/torch_io/sync_batch_norm.h"

namespace parsimony::training {
namespace {

constexpr double kEpsilon = 1e-5;

bool is_norm(const Graph& graph, const Use& use) {
  return use.input == 0 && schema_of(graph.node(use.node)).norm.statistics >= 0;
}

/// Whether it is a float32 weight read only by this operand.
bool is_own_float(const Graph& graph, ValueId value) {
  if (value == kNone) return false;
  const Value& operand = graph.value(value);
  if (operand.weight == kNone || operand.uses.size() != 1 || operand.captured) return false;
  const auto same = [&](const Value& other) { return other.weight == operand.weight; };
  return graph.weight(operand.weight).dtype == DType::kFloat32 &&
         std::count_if(graph.values.begin(), graph.values.end(), same) == 1;
}

bool wants_norm(const Graph& graph, const Node& node) {
  const Linear& linear = schema_of(node).linear;
  if (linear.kind != LinearKind::kConvolution || !linear.plain || node.inputs.size() < 3) {
    return false;
  }
  if (node.body != kNone) return false;  // it may run on few samples or none
  if (!is_own_float(graph, node.inputs[1]) || !is_own_float(graph, node.inputs[2])) return false;
  const auto& uses = graph.value(node.outputs[0]).uses;
  return std::none_of(uses.begin(), uses.end(),
                      [&](const Use& use) { return is_norm(graph, use); });
}

}  // namespace

TrainingNorms::TrainingNorms(Graph& graph) {
  for (const NodeId n : graph.nodes.ids()) {
    if (wants_norm(graph, graph.node(n))) add(graph, n);
  }
  if (!empty()) finish(graph);
}

ValueId TrainingNorms::add_vector(Graph& graph, const std::string& name, int64_t size,
                                  float value) {
  const std::vector<float>& values = values_.emplace_back(size, value);
  const WeightId weight =
      graph.weights.push_back({.name = name,
                               .dtype = DType::kFloat32,
                               .dims = {size},
                               .data = reinterpret_cast<const std::byte*>(values.data())});
  return graph.values.push_back({.name = name, .dtype = DType::kFloat32, .weight = weight});
}

void TrainingNorms::add(Graph& graph, NodeId convolution) {
  const Node conv = graph.node(convolution);
  const Weight& bias = graph.weight_of(conv.inputs[2]);
  const int64_t size = bias.dims[0];
  const std::string predictions = graph.value(conv.outputs[0]).name;
  Norm norm{.weight = graph.weight_of(conv.inputs[1]).name,
            .bias = bias.name,
            .scale = predictions + "/norm/scale",
            .shift = predictions + "/norm/shift",
            .mean = predictions + "/norm/mean",
            .variance = predictions + "/norm/variance",
            .predictions = graph.values.next_id()};

  graph.values.push_back({.name = predictions + "/norm/input", .dtype = DType::kFloat32});
  graph.nodes[convolution].outputs[0] = norm.predictions;

  Node node;
  node.name = predictions + "/norm";
  node.op = "BatchNormalization";
  node.opset = conv.opset;
  node.attributes = {{"epsilon", kEpsilon}};
  node.inputs = {norm.predictions,
                 add_vector(graph, norm.scale, size, static_cast<float>(std::sqrt(1 + kEpsilon))),
                 add_vector(graph, norm.shift, size, 0), add_vector(graph, norm.mean, size, 0),
                 add_vector(graph, norm.variance, size, 1)};
  node.outputs = {conv.outputs[0]};
  graph.nodes.push_back(std::move(node));
  norms_.push_back(std::move(norm));
}

void TrainingNorms::settle(GraphModuleImpl& net, const at::Tensor& x) {
  if (std::exchange(settled_, true)) return;
  const auto& weights = net.weights();
  std::map<ValueId, const Norm*> fresh;
  for (const Norm& norm : norms_) {
    const bool unseen = weights.at(norm.mean).eq(0).all().item<bool>() &&
                        weights.at(norm.variance).eq(1).all().item<bool>();
    if (unseen) fresh.emplace(norm.predictions, &norm);
  }
  if (fresh.empty()) return;
  const at::NoGradGuard no_grad;
  const torch_io::Evaluating evaluating(net);
  net.observe([&](const Node&, ValueId value, const at::Tensor& predictions) {
    const auto known = fresh.find(value);
    if (known == fresh.end()) return;
    const Norm& norm = *known->second;
    const auto [mean, variance] = torch_io::channel_moments(predictions);
    weights.at(norm.mean).detach().copy_(mean);
    weights.at(norm.variance).detach().copy_(variance);
    weights.at(norm.shift).detach().copy_(mean);
    weights.at(norm.scale).detach().copy_(at::sqrt(variance + kEpsilon));
  });
  net.forward({x});
  net.observe({});
}

std::map<std::string, at::Tensor> TrainingNorms::folded(const GraphModuleImpl& net) const {
  const at::NoGradGuard no_grad;
  const auto& weights = net.weights();
  const auto wide = [&](const std::string& name) { return weights.at(name).to(at::kDouble); };
  std::map<std::string, at::Tensor> result;
  for (const Norm& norm : norms_) {
    const at::Tensor& weight = weights.at(norm.weight);
    const at::Tensor factor = wide(norm.scale) / at::sqrt(wide(norm.variance) + kEpsilon);
    std::vector<int64_t> per_filter(weight.dim(), 1);
    per_filter[0] = -1;
    const at::Tensor centred = wide(norm.bias) - wide(norm.mean);
    const auto type = weight.scalar_type();
    result[norm.weight] = (wide(norm.weight) * factor.reshape(per_filter)).to(type);
    result[norm.bias] = (centred * factor + wide(norm.shift)).to(type);
  }
  return result;
}

}  // namespace parsimony::training
