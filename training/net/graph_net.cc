#include "parsimony/training/net/graph_net.h"

#include <unordered_map>

#include "parsimony/graph/operators/schema.h"
#include "parsimony/torch_io/executor/graph_module.h"

namespace parsimony::training {
namespace {

class GraphNet final : public TrainedModule {
 public:
  explicit GraphNet(const Graph& graph) : net_(with_logits(graph)) {}

  std::vector<at::Tensor> outputs(const SampleBatch& batch) override {
    return {net_->forward(batch.inputs.front())};
  }
  std::vector<NamedParameter> parameters() override { return named(net_->named_parameters()); }
  std::vector<NamedParameter> buffers() override { return named(net_->named_buffers()); }
  void train(bool on) override { net_->train(on); }

 private:
  /// Returns the tensors that are weights of the graph, by its names.
  std::vector<NamedParameter> named(const torch::OrderedDict<std::string, at::Tensor>& own) const {
    std::vector<NamedParameter> result = by_graph_names(*net_, own);
    std::erase_if(result, [this](const NamedParameter& parameter) {
      const auto known = net_->weights().find(parameter.first);
      return known == net_->weights().end() || !known->second.is_same(parameter.second);
    });
    return result;
  }

  GraphModule net_;
};

}  // namespace

std::unique_ptr<TrainedModule> graph_net(const Graph& graph) {
  return std::make_unique<GraphNet>(graph);
}

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
