#include <algorithm>

#include "parsimony/base/ranges.h"
#include "parsimony/speedup/scale_axes_impl.h"

namespace parsimony {
namespace {

// Maximum number of nodes between a factor and the contraction: few in attention, a dozen with
// rotary embedding.
constexpr size_t kMostSteps = 48;
constexpr int kMostWeightSteps = 4;

bool is_attention(const Node& node) { return has_trait(node, kAttends); }
bool is_sum(const Node& node) { return has_trait(node, kSums) || is_attention(node); }

/// A weight, perhaps transposed or reshaped on its way.
bool is_static(const Graph& graph, const Facts& facts, ValueId value, int depth = 0) {
  if (value == kNone || facts.constants[value] || graph.value(value).weight != kNone) {
    return true;
  }
  const NodeId producer = graph.value(value).producer;
  if (producer == kNone || depth == kMostWeightSteps) return false;
  const auto& inputs = graph.node(producer).inputs;
  return std::ranges::all_of(inputs,
                             [&](ValueId v) { return is_static(graph, facts, v, depth + 1); });
}

/// The rows of a table that are looked up: their width is what an embedding is scaled by.
bool is_embedding(const Graph& graph, const Facts& facts, const Node& node) {
  const bool looks_up = schema_of(node).linear.kind == LinearKind::kLookup;
  if (!looks_up || node.inputs.size() != 2 || node.inputs[0] == kNone) return false;
  return graph.value(node.inputs[0]).weight != kNone && !is_static(graph, facts, node.inputs[1]);
}

/// A breadth-first walk over homogeneous operators.
class Walk {
 public:
  Walk(const Graph& graph, const Facts& facts) : graph_(graph), facts_(facts) {}

  std::vector<ScaleAxis> run(ValueId data, ValueId product) {
    std::vector<ValueId> before = {data};
    std::vector<ValueId> behind = {product};
    for (size_t i = 0; i < kMostSteps && (i < before.size() || i < behind.size()); ++i) {
      if (i < behind.size()) step_forward(behind[i], behind);
      if (i < before.size()) step_back(before[i], before);
    }
    std::ranges::stable_sort(found_, {}, &ScaleAxis::weighted);
    return std::move(found_);
  }

 private:
  static void visit(ValueId value, std::vector<ValueId>& queue) {
    if (value == kNone || contains(queue, value)) return;
    queue.push_back(value);
  }

  void step_back(ValueId value, std::vector<ValueId>& queue) {
    const NodeId producer = graph_.value(value).producer;
    if (producer == kNone) return;
    const Node& node = graph_.node(producer);
    if (is_embedding(graph_, facts_, node)) {
      add_embedding(node);
    } else if (is_sum(node)) {
      add(summed_axes(graph_, facts_, node));
    } else if (has_trait(node, kHomogeneous)) {
      for (const ValueId input : node.inputs) {
        if (!is_static(graph_, facts_, input)) visit(input, queue);
      }
    }
  }

  void step_forward(ValueId value, std::vector<ValueId>& queue) {
    for (const Use& use : graph_.value(value).uses) {
      const Node& node = graph_.node(use.node);
      if (is_sum(node)) {
        add(summed_axes(graph_, facts_, node));
      } else if (has_trait(node, kHomogeneous)) {
        for (const ValueId output : node.outputs) visit(output, queue);
      }
    }
  }

  void add(const std::vector<ScaleAxis>& axes) {
    found_.insert(found_.end(), axes.begin(), axes.end());
  }

  void add_embedding(const Node& node) {
    const auto& shape = facts_.shapes[node.outputs[0]];
    if (!shape || shape->empty()) return;
    const auto last = static_cast<int>(shape->size()) - 1;
    found_.push_back({node.outputs[0], last, 1, shape->back(), false, true});
  }

  const Graph& graph_;
  const Facts& facts_;
  std::vector<ScaleAxis> found_;
};

}  // namespace

std::vector<ScaleAxis> summed_axes(const Graph& graph, const Facts& facts, const Node& node) {
  const Factors factors = factor(NodeView(graph, node, facts));
  const bool product = !is_attention(node) && !has_trait(node, kReduces);
  const size_t sides = product ? std::min<size_t>(2, node.inputs.size()) : 0;
  const bool weighted =
      std::any_of(node.inputs.begin(), node.inputs.begin() + static_cast<std::ptrdiff_t>(sides),
                  [&](ValueId v) { return v != kNone && is_static(graph, facts, v); });
  std::vector<ScaleAxis> axes;
  std::vector<bool> seen(factors.labels.size(), false);
  for (const Term& term : factors.terms) {
    int64_t stride = 1;
    for (size_t i = term.labels.size(); i-- > 0;) {
      const auto l = static_cast<size_t>(term.labels[i]);
      const Label& label = factors.labels[l];
      const bool summed =
          is_attention(node) ? label.role == notation::LabelRole::kHeadDim : label.contracted;
      if (summed && !seen[l] && label.size > 1) {
        seen[l] = true;
        axes.push_back({term.value, term.dim, stride, label.size, weighted, false});
      }
      stride *= label.size;
    }
  }
  return axes;
}

std::vector<ScaleAxis> axes_near(const Graph& graph, const Facts& facts, ValueId data,
                                 ValueId product) {
  return Walk(graph, facts).run(data, product);
}

}  // namespace parsimony
