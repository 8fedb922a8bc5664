// Sizes that something other than an operator of the Graph looks at.
#include "parsimony/torch_io/script/interpreter_impl.h"

namespace parsimony::torch_io::script {
namespace {

constexpr size_t kMostNodes = 256;  // arithmetic on sizes is short

class SizeSearch {
 public:
  explicit SizeSearch(const Graph& graph) : graph_(graph) {
    for (const Node& node : graph.nodes) {
      for (const ValueId output : node.outputs) producers_[output] = &node;
    }
  }

  std::vector<Size> run(ValueId number) {
    std::vector<ValueId> open{number};
    while (!open.empty() && done_.size() < kMostNodes) {
      const ValueId value = open.back();
      open.pop_back();
      const Node* node = producer(value);
      if (node == nullptr || !done_.insert(value).second || found(*node)) continue;
      for (const ValueId input : node->inputs) {
        if (input != kNone) open.push_back(input);
      }
    }
    return std::move(sizes_);
  }

 private:
  const Node* producer(ValueId value) const {
    const auto found = producers_.find(value);
    return found == producers_.end() ? nullptr : found->second;
  }

  /// One size: Gather(Shape(x), index); all of them: Shape(x), Size(x).
  bool found(const Node& node) {
    if (node.op == "Shape" || node.op == "Size") {
      sizes_.push_back({node.inputs[0], kNone});
      return true;
    }
    const Node* shape = node.op == "Gather" ? producer(node.inputs[0]) : nullptr;
    const WeightId index = shape == nullptr ? kNone : graph_.value(node.inputs[1]).weight;
    if (shape == nullptr || shape->op != "Shape" || index == kNone) return false;
    sizes_.push_back({shape->inputs[0], static_cast<int>(to_host(graph_.weight(index)).ints[0])});
    return true;
  }

  const Graph& graph_;
  std::unordered_map<ValueId, const Node*> producers_;
  std::unordered_set<ValueId> done_;
  std::vector<Size> sizes_;
};

}  // namespace

std::vector<Size> Interpreter::sizes_behind(ValueId number) const {
  return SizeSearch(graph_).run(number);
}

/// For a number that leaves the graph or decides something: it may not change. A dimension of which
/// one place is read stays whole.
void Interpreter::pin_sizes_behind(const std::string& op, ValueId number) {
  if (graph_.value(number).weight != kNone || builder_.known(number) == nullptr) return;
  for (const Size& size : sizes_behind(number)) {
    if (size.dim == kNone) {
      builder_.pin(op, {size.value});
      continue;
    }
    builder_.begin(op);
    builder_.pin_axis(size.value, size.dim);
  }
}

}  // namespace parsimony::torch_io::script
