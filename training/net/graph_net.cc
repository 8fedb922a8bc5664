#include "parsimony/training/net/graph_net.h"

#include <unordered_map>

#include "parsimony/base/errors.h"
#include "parsimony/graph/operators/schema.h"
#include "parsimony/torch_io/executor/graph_module.h"

namespace parsimony::training {
namespace {

/// A network made from a graph supports training only.
UnsupportedError only_trained(std::string_view what) {
  return UnsupportedError("a network under recovery can be trained, not ", what);
}

class GraphNet final : public Net {
 public:
  explicit GraphNet(const Graph& graph) : graph_(graph), net_(with_logits(graph)) {}

  at::Tensor forward(const at::Tensor& x) override { return net_->forward(x); }
  std::vector<NamedParameter> parameters() override { return named(net_->named_parameters()); }
  std::vector<NamedParameter> buffers() override { return named(net_->named_buffers()); }
  void train(bool on) override { net_->train(on); }
  std::vector<ParameterGroup> groups(const at::Tensor& /*example*/,
                                     Granularity granularity) override {
    Graph graph = graph_;
    return parameter_groups(graph, {}, granularity, parameters());
  }

  PruneResult prune(const at::Tensor& /*example*/, const PruneRequest& /*request*/,
                    const PruneServices& /*services*/) override {
    throw only_trained("pruned");
  }
  void restore(const Plan& /*plan*/) override { throw only_trained("pruned"); }
  std::unique_ptr<Net> clone_architecture() const override { return graph_net(graph_); }
  void save(const std::string& /*path*/, const at::Tensor& /*example*/) override {
    throw only_trained("saved");
  }

 private:
  /// Those that the graph has as weights of its own, by its names.
  std::vector<NamedParameter> named(const torch::OrderedDict<std::string, at::Tensor>& own) const {
    std::vector<NamedParameter> result = by_graph_names(*net_, own);
    std::erase_if(result, [this](const NamedParameter& parameter) {
      const auto known = net_->weights().find(parameter.first);
      return known == net_->weights().end() || !known->second.is_same(parameter.second);
    });
    return result;
  }

  const Graph& graph_;
  GraphModule net_;
};

}  // namespace

std::unique_ptr<Net> graph_net(const Graph& graph) { return std::make_unique<GraphNet>(graph); }

std::vector<NamedParameter> by_graph_names(const GraphModuleImpl& net,
                                           const torch::OrderedDict<std::string, at::Tensor>& own) {
  std::unordered_map<const c10::TensorImpl*, std::string> names;
  for (const auto& [name, tensor] : net.weights()) {
    names.emplace(tensor.unsafeGetTensorImpl(), name);
  }
  std::vector<NamedParameter> result;
  for (const auto& item : own) {
    const auto known = names.find(item.value().unsafeGetTensorImpl());
    result.emplace_back(known == names.end() ? item.key() : known->second, item.value());
  }
  return result;
}

Graph with_logits(Graph graph) {
  ValueId& answer = graph.outputs.front();
  const NodeId producer = graph.value(answer).producer;
  if (producer == kNone) return graph;
  const Node& node = graph.node(producer);
  if (has_trait(node, kProbabilities)) answer = node.inputs.front();
  return graph;
}

}  // namespace parsimony::training
