#include "parsimony/training/net/logits.h"

namespace parsimony::training {

Graph with_logits(Graph graph) {
  ValueId& answer = graph.outputs.front();
  const NodeId producer = graph.value(answer).producer;
  if (producer == kNone) return graph;
  const Node& node = graph.node(producer);
  if (node.domain.empty() && node.op == "Softmax") answer = node.inputs.front();
  return graph;
}

}  // namespace parsimony::training
