#include "parsimony/training/net/logits.h"

#include "parsimony/graph/operators/schema.h"

namespace parsimony::training {

Graph with_logits(Graph graph) {
  ValueId& answer = graph.outputs.front();
  const NodeId producer = graph.value(answer).producer;
  if (producer == kNone) return graph;
  const Node& node = graph.node(producer);
  if (has_trait(node, kProbabilities)) answer = node.inputs.front();
  return graph;
}

}  // namespace parsimony::training
