#include "parsimony/masks/memory.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <vector>

#include "parsimony/graph/operators/node_view.h"
#include "parsimony/graph/operators/notation.h"
#include "parsimony/graph/operators/schema.h"
#include "parsimony/graph/weights.h"

namespace parsimony {
namespace {

/// Returns the bytes of an element, which is float32 where a file does not say the type.
int64_t bytes_of(DType dtype) {
  const int64_t bytes = size_of(dtype);
  return bytes > 0 ? bytes : 4;
}

/// Lets tensors share memory, node by node.
class Schedule {
 public:
  struct Buffer {
    std::vector<ValueId> values;
    int first = 0;
    int last = 0;
    bool is_input = false;
  };

  Schedule(const Graph& graph, const Facts& facts) : graph_(graph), facts_(facts) {
    constant_ = depends_on_weights_only(graph);
    steps_.resize(graph.nodes.size(), kNone);
    for (const NodeId n : graph.nodes.ids()) {
      if (graph.node(n).body != kNone || is_constant(graph.node(n))) continue;
      steps_[n] = static_cast<int>(nodes.size());
      nodes.push_back(n);
    }
    buffer_of_.resize(graph.values.size(), kNone);
    for (const ValueId input : graph.inputs) open(input, 0, true);
    for (const NodeId n : nodes) place(graph.node(n), steps_[n]);
  }

  std::vector<Buffer> buffers;
  std::vector<NodeId> nodes;

 private:
  bool counts(ValueId v) const {
    return !constant_[v] && !facts_.computed[v] && facts_.shapes[v].has_value();
  }

  bool is_constant(const Node& node) const {
    return std::ranges::all_of(
        node.outputs, [&](ValueId v) { return v == kNone || constant_[v] || facts_.computed[v]; });
  }

  /// Returns the step of a node; in a branch or loop, the step of the node that it is inside of.
  int step_of(NodeId n) const {
    while (n != kNone && graph_.node(n).body != kNone) n = graph_.bodies[graph_.node(n).body].owner;
    return n == kNone ? kNone : steps_[n];
  }

  int last_use(ValueId v, int made) const {
    const Value& value = graph_.value(v);
    if (value.is_output || value.captured) return static_cast<int>(nodes.size()) - 1;
    int last = made;
    for (const Use& use : value.uses) last = std::max(last, step_of(use.node));
    return last;
  }

  void open(ValueId v, int step, bool is_input = false) {
    if (!counts(v)) return;
    buffer_of_[v] = static_cast<int>(buffers.size());
    buffers.push_back({{v}, step, last_use(v, step), is_input});
  }

  void join(ValueId v, ValueId with) {
    buffer_of_[v] = buffer_of_[with];
    Buffer& buffer = buffers[buffer_of_[v]];
    buffer.values.push_back(v);
    buffer.last = std::max(buffer.last, last_use(v, buffer.last));
  }

  void place(const Node& node, int step) {
    for (const ValueId output : node.outputs) {
      if (output == kNone || !counts(output)) continue;
      const ValueId under = reused(node, output, step);
      if (under == kNone) {
        open(output, step);
      } else {
        join(output, under);
      }
    }
  }

  /// The operand in whose memory the output lies; kNone if it has its own.
  ValueId reused(const Node& node, ValueId output, int step) const {
    if (node.outputs.size() != 1) return kNone;
    const NodeView view(graph_, node, facts_);
    const OpSchema& schema = schema_of(node);
    if (is_view(view, schema)) return node.inputs[0];
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const ValueId input = node.inputs[i];
      if (input == kNone || buffer_of_[input] == kNone || !elementwise_in(schema, i)) continue;
      const Buffer& buffer = buffers[buffer_of_[input]];
      const bool fits = facts_.shapes[input] == facts_.shapes[output] &&
                        bytes_of(graph_.value(input).dtype) == bytes_of(graph_.value(output).dtype);
      if (fits && buffer.last == step && !buffer.is_input) return input;
    }
    return kNone;
  }

  /// Whether the result has the operand's elements in the same order.
  bool is_view(const NodeView& view, const OpSchema& schema) const {
    const ValueId first = view.input(0);
    if (first == kNone || buffer_of_[first] == kNone) return false;
    const auto is_data = [&](ValueId v) { return v != kNone && counts(v); };
    if (std::ranges::count_if(view.node().inputs, is_data) != 1) return false;
    const bool same_type =
        bytes_of(graph_.value(first).dtype) == bytes_of(graph_.value(view.output(0)).dtype);
    const bool same_size =
        element_count(*facts_.shapes[first]) == element_count(*facts_.shapes[view.output(0)]);
    return same_type && same_size && (schema.traits & (kCopies | kRearranges)) != 0;
  }

  /// Is each element of the result made of the operand's at the same place?
  static bool elementwise_in(const OpSchema& schema, size_t operand) {
    const notation::Line* line = compiled(schema);
    if (line == nullptr || line->alternatives.size() != 1) return false;
    const notation::Alternative& only = line->alternatives.front();
    if (only.inputs.empty() || only.outputs.size() != 1) return false;
    const auto& from = only.inputs[std::min(operand, only.inputs.size() - 1)].dims;
    const auto& to = only.outputs[0].dims;
    return from.size() == 1 && to.size() == 1 && from[0].ellipsis && to[0].ellipsis &&
           from[0].labels == to[0].labels;
  }

  const Graph& graph_;
  const Facts& facts_;
  IdVector<ValueId, bool> constant_;
  IdVector<NodeId, int> steps_;  ///< kNone: it does not run
  IdVector<ValueId, int> buffer_of_;
};

}  // namespace

int64_t weight_bytes(const Graph& graph) {
  int64_t bytes = 0;
  for (const Weight& weight : graph.weights) bytes += weight.count() * size_of(weight.dtype);
  return bytes;
}

namespace {

/// Elements of 4 and 2 bits share bytes.
IdVector<WeightId, int64_t> bits_of_weights(const Graph& graph) {
  IdVector<WeightId, int64_t> bits;
  for (const Weight& weight : graph.weights) {
    bits.push_back(size_of(weight.dtype) > 0 ? bits_of(weight.dtype) : 8 * bytes_of(weight.dtype));
  }
  return bits;
}

}  // namespace

WeightBytes::WeightBytes(const Graph& graph, const Coupling& coupling)
    : counts_(coupling), bits_(graph, coupling, bits_of_weights(graph), counts_) {}

int64_t WeightBytes::under(const AxisMasks& masks) const {
  return (bits_.sum(counts_.under(masks), masks) + 7) / 8;
}

ActivationMemory::ActivationMemory(const Graph& graph, const Facts& facts, const Coupling& coupling)
    : counts_(coupling) {
  const Schedule schedule(graph, facts);
  nodes_ = schedule.nodes;
  for (const Schedule::Buffer& shared : schedule.buffers) {
    Buffer& buffer = buffers_.emplace_back(Buffer{{}, shared.first, shared.last});
    for (const ValueId v : shared.values) {
      buffer.tensors.push_back(counts_.add(v, *facts.shapes[v], bytes_of(graph.value(v).dtype)));
    }
  }
}

std::vector<int64_t> ActivationMemory::sizes(const AxisMasks& masks) const {
  const std::vector<int64_t> bytes = counts_.under(masks);
  std::vector<int64_t> sizes;
  for (const Buffer& buffer : buffers_) {
    int64_t& size = sizes.emplace_back(0);
    for (const int tensor : buffer.tensors) size = std::max(size, bytes[tensor]);
  }
  return sizes;
}

std::vector<int64_t> ActivationMemory::steps(const AxisMasks& masks) const {
  if (nodes_.empty()) return {};  // inputs whose sizes alone are read
  const std::vector<int64_t> sizes = this->sizes(masks);
  std::vector<int64_t> steps(nodes_.size() + 1, 0);
  for (size_t b = 0; b < buffers_.size(); ++b) {
    steps[buffers_[b].first] += sizes[b];
    steps[buffers_[b].last + 1] -= sizes[b];
  }
  for (size_t s = 1; s < steps.size(); ++s) steps[s] += steps[s - 1];
  steps.pop_back();
  return steps;
}

std::vector<MemoryStep> ActivationMemory::curve(const AxisMasks& masks) const {
  const std::vector<int64_t> bytes = steps(masks);
  std::vector<MemoryStep> curve;
  for (size_t s = 0; s < nodes_.size(); ++s) curve.push_back({nodes_[s], bytes[s]});
  return curve;
}

int64_t ActivationMemory::peak(const AxisMasks& masks) const {
  const std::vector<int64_t> bytes = steps(masks);
  return bytes.empty() ? 0 : std::ranges::max(bytes);
}

int64_t ActivationMemory::arena(const AxisMasks& masks) const {
  constexpr int64_t kAligned = 16;
  struct Placed {
    int64_t begin = 0;
    int64_t end = 0;
    const Buffer* buffer = nullptr;
  };
  const std::vector<int64_t> sizes = this->sizes(masks);
  std::vector<size_t> order(buffers_.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, std::greater(), [&](size_t b) { return sizes[b]; });
  std::vector<Placed> placed;  // by their begin
  int64_t arena = 0;
  for (const size_t b : order) {
    const Buffer& buffer = buffers_[b];
    int64_t begin = 0;
    for (const Placed& other : placed) {
      const bool together =
          other.buffer->first <= buffer.last && buffer.first <= other.buffer->last;
      if (!together || other.end <= begin) continue;
      if (other.begin >= begin + sizes[b]) break;
      begin = (other.end + kAligned - 1) / kAligned * kAligned;
    }
    const Placed own{begin, begin + sizes[b], &buffer};
    placed.insert(std::ranges::upper_bound(placed, begin, {}, &Placed::begin), own);
    arena = std::max(arena, own.end);
  }
  return arena;
}

}  // namespace parsimony
