#include <algorithm>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "parsimony/base/ranges.h"
#include "parsimony/graph/attributes.h"
#include "parsimony/onnx_io/reader_impl.h"

namespace parsimony::onnx_io {
namespace {

using Elements = std::vector<ValueId>;

constexpr int64_t kMostElements = 1024;

bool is(const Node& node, std::string_view op) { return node.op == op && node.domain.empty(); }

class Lists {
 public:
  explicit Lists(Graph& graph) : graph_(graph) {
    for (const NodeId id : graph.nodes.ids()) {
      for (const ValueId v : graph.nodes[id].outputs) {
        if (v != kNone) producers_[v] = id;
      }
    }
  }

  void resolve() {
    for (const NodeId id : graph_.nodes.ids()) {
      if (is(id, "SequenceAt")) take_element(id);
      if (is(id, "ConcatFromSequence")) join(id);
    }
  }

  /// Removes lists without readers.
  void drop_unread() {
    for (bool again = true; again;) {
      IdVector<ValueId, bool> read(graph_.values.size(), false);
      for (const Node& node : graph_.nodes) {
        for (const ValueId v : node.inputs) mark(v, read);
      }
      for (const ValueId v : graph_.outputs) mark(v, read);
      for (const Body& body : graph_.bodies) {
        for (const ValueId v : body.outputs) mark(v, read);
      }
      const size_t before = graph_.nodes.size();
      IdVector<NodeId, Node> left;
      for (Node& node : graph_.nodes) {
        const bool is_list = node.domain.empty() && node.op.starts_with("Sequence");
        const bool is_read = std::ranges::any_of(
            node.outputs, [&](ValueId v) { return v != kNone && (read[v] || is_captured(v)); });
        if (!is_list || is_read || node.has_subgraph) left.push_back(std::move(node));
      }
      graph_.nodes = std::move(left);
      again = graph_.nodes.size() < before;
    }
  }

 private:
  bool is(NodeId id, std::string_view op) const { return onnx_io::is(graph_.nodes[id], op); }

  static void mark(ValueId v, IdVector<ValueId, bool>& read) {
    if (v != kNone) read[v] = true;
  }

  bool is_captured(ValueId v) const { return graph_.value(v).captured; }

  /// Returns the integers of a constant operand; empty if it is absent or computed.
  std::optional<std::vector<int64_t>> integers(const Node& node, size_t i) const {
    if (operand(node, i) == kNone) return std::nullopt;
    const WeightId weight = graph_.value(node.inputs[i]).weight;
    if (weight == kNone || graph_.weight(weight).data == nullptr) return std::nullopt;
    if (is_floating(graph_.weight(weight).dtype) || graph_.weight(weight).count() > kMostElements) {
      return std::nullopt;
    }
    return to_host(graph_.weight(weight)).ints;
  }

  /// Returns a position in a list of `length` elements, which may be negative, at most `most`;
  /// `most` if the operand is absent.
  std::optional<size_t> place(const Node& node, size_t i, size_t length, int64_t most) const {
    int64_t at = most;
    if (operand(node, i) != kNone) {
      const auto number = integers(node, i);
      if (!number || number->size() != 1) return std::nullopt;
      at = number->front() < 0 ? number->front() + static_cast<int64_t>(length) : number->front();
    }
    return at >= 0 && at <= most ? std::optional(static_cast<size_t>(at)) : std::nullopt;
  }

  std::optional<Elements> elements(ValueId list) {
    if (const auto known = known_.find(list); known != known_.end()) return known->second;
    known_[list] = std::nullopt;  // guards against cycles
    const auto producer = producers_.find(list);
    if (producer == producers_.end() || depth_ >= kMostElements) return std::nullopt;
    ++depth_;
    std::optional<Elements> found = made_by(producer->second);
    --depth_;
    const bool is_whole = found && std::ssize(*found) <= kMostElements && !contains(*found, kNone);
    return known_[list] = is_whole ? std::move(found) : std::nullopt;
  }

  /// Returns an operand; kNone if there is none.
  static ValueId operand(const Node& node, size_t i) {
    return i < node.inputs.size() ? node.inputs[i] : kNone;
  }

  std::optional<Elements> made_by(NodeId id) {
    const Node& node = graph_.nodes[id];
    if (is(id, "SequenceEmpty")) return Elements();
    if (is(id, "SequenceConstruct")) return node.inputs;
    if (is(id, "SplitToSequence")) return split(id);
    const bool inserts = is(id, "SequenceInsert");
    if (!inserts && !is(id, "SequenceErase") && !is(id, "Identity")) return std::nullopt;
    auto list = elements(operand(node, 0));
    if (!list || is(id, "Identity")) return list;
    const auto length = static_cast<int64_t>(list->size());
    const auto at = place(node, inserts ? 2 : 1, list->size(), inserts ? length : length - 1);
    if (!at) return std::nullopt;
    const auto where = list->begin() + static_cast<std::ptrdiff_t>(*at);
    if (inserts) {
      list->insert(where, operand(node, 1));
    } else {
      list->erase(where);
    }
    return list;
  }

  /// Splits a node; the first element keeps the list's name, which identifies the node in the file.
  std::optional<Elements> split(NodeId id) {
    const auto sizes = integers(graph_.nodes[id], 1);
    const ValueId list = graph_.nodes[id].outputs[0];
    if (!sizes || sizes->empty() || is_captured(list) || is_read_as_list(list)) return std::nullopt;
    const bool is_list = !graph_.weight_of(graph_.nodes[id].inputs[1]).dims.empty();
    const int64_t count =
        is_list ? static_cast<int64_t>(sizes->size()) : equal_parts(id, sizes->front());
    if (count == 0) return std::nullopt;
    if (!is_list) graph_.nodes[id].inputs.resize(1);
    Elements parts{list};
    for (int64_t i = 1; i < count; ++i) {
      const ValueId part = graph_.values.next_id();
      Value& value = graph_.values.emplace_back();
      value.name = graph_.value(list).name + std::string(kInside) + std::to_string(i);
      value.dtype = graph_.value(list).dtype;
      parts.push_back(part);
    }
    graph_.nodes[id].op = "Split";
    graph_.nodes[id].opset = std::max(graph_.nodes[id].opset, 13);  // its sizes are an operand
    graph_.nodes[id].outputs = parts;
    return parts;
  }

  /// Returns how many parts of `size` a dimension has, which its value's type declares; 0 if that
  /// is unknown, or a part is shorter.
  int64_t equal_parts(NodeId id, int64_t size) const {
    const auto& dims = graph_.value(operand(graph_.nodes[id], 0)).declared;
    if (!dims || size < 1) return 0;
    const auto rank = static_cast<int64_t>(dims->size());
    const int64_t axis = attr(graph_.nodes[id], "axis", 0);
    if (axis < -rank || axis >= rank) return 0;
    const int64_t whole = (*dims)[static_cast<size_t>(axis < 0 ? axis + rank : axis)];
    const bool equal = whole > 0 && whole % size == 0 && whole / size <= kMostElements;
    return equal ? whole / size : 0;
  }

  /// Returns whether the list itself is read, not just its elements.
  bool is_read_as_list(ValueId list) const {
    const auto is_result = [&](const Body& body) { return contains(body.outputs, list); };
    if (contains(graph_.outputs, list) || std::ranges::any_of(graph_.bodies, is_result))
      return true;
    return std::ranges::any_of(graph_.nodes, [&](const Node& node) {
      const bool takes_elements =
          (onnx_io::is(node, "SequenceAt") && integers(node, 1)) || joins(node);
      return !takes_elements && std::ranges::find(node.inputs, list) != node.inputs.end();
    });
  }

  static bool joins(const Node& node) {
    return onnx_io::is(node, "ConcatFromSequence") && attr(node, "new_axis", 0) == 0;
  }

  void take_element(NodeId id) {
    const auto list = elements(operand(graph_.nodes[id], 0));
    if (!list) return;
    const auto at = place(graph_.nodes[id], 1, list->size(), std::ssize(*list) - 1);
    if (!at) return;
    Node& node = graph_.nodes[id];
    node.op = "Identity";
    node.inputs = {(*list)[*at]};
  }

  void join(NodeId id) {
    if (!joins(graph_.nodes[id])) return;
    const auto list = elements(operand(graph_.nodes[id], 0));
    if (!list || list->empty()) return;
    graph_.nodes[id].op = "Concat";
    graph_.nodes[id].inputs = *list;
  }

  Graph& graph_;
  std::unordered_map<ValueId, NodeId> producers_;
  std::unordered_map<ValueId, std::optional<Elements>> known_;
  int depth_ = 0;
};

}  // namespace

void resolve_lists(Graph& graph) {
  const bool has_lists = std::ranges::any_of(graph.nodes, [](const Node& node) {
    return is(node, "SequenceAt") || is(node, "ConcatFromSequence");
  });
  if (!has_lists) return;
  Lists lists(graph);
  lists.resolve();
  lists.drop_unread();
}

}  // namespace parsimony::onnx_io
