#include "parsimony/report/network/drawing_impl.h"

namespace parsimony {
namespace {

class Drawer {
 public:
  Drawer(const Graph& graph, const Facts& facts, const DimClassGroups& groups)
      : graph_(graph),
        facts_(facts),
        groups_(groups),
        box_of_node_(graph.nodes.size(), kNone),
        box_of_input_(graph.values.size(), kNone) {}

  Drawing run() {
    for (const ValueId v : graph_.inputs) box_of_input_[v] = add({kNone, v, {}});
    for (const NodeId n : graph_.nodes.ids()) draw(n);
    for (const ValueId v : graph_.outputs) {
      const NodeId producer = graph_.value(v).producer;
      if (producer == kNone || facts_.computed[v]) continue;
      const int known = box_of_input_[v];
      connect(box_of_node_[producer], known != kNone ? known : add({kNone, v, {}}));
    }
    return std::move(drawing_);
  }

 private:
  int add(DrawnBox box) {
    drawing_.boxes.push_back(std::move(box));
    return static_cast<int>(drawing_.boxes.size()) - 1;
  }

  void connect(int from, int to, bool inside = false) {
    if (from != kNone) drawing_.lines.push_back({from, to, inside});
  }

  void draw(NodeId n) {
    const Node& node = graph_.nodes[n];
    ValueId first = kNone;
    for (const ValueId v : node.outputs) {
      if (v != kNone && first == kNone) first = v;
    }
    if (first != kNone && facts_.computed[first]) return;
    const int box = add({n, first, groups_.of_outputs(node)});
    box_of_node_[n] = box;
    for (const ValueId v : node.inputs) {
      if (v == kNone || facts_.computed[v]) continue;
      const Value& value = graph_.value(v);
      if (value.producer != kNone) connect(box_of_node_[value.producer], box);
      if (value.is_input) connect(box_of_input_[v], box);
    }
    for (const BodyId b : node.bodies) {  // what runs inside leads to the node
      for (const ValueId v : graph_.bodies[b].outputs) {
        const NodeId producer = graph_.value(v).producer;
        if (producer != kNone && !facts_.computed[v]) connect(box_of_node_[producer], box, true);
      }
    }
  }

  const Graph& graph_;
  const Facts& facts_;
  const DimClassGroups& groups_;
  IdVector<NodeId, int> box_of_node_;
  IdVector<ValueId, int> box_of_input_;
  Drawing drawing_;
};

}  // namespace

Drawing drawing_of(const Graph& graph, const Facts& facts, const DimClassGroups& groups) {
  return Drawer(graph, facts, groups).run();
}

}  // namespace parsimony
