// A node together with the facts about its operands, as seen by an operator's functions.
// Their patches are the integers inside a model that follow from shapes.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "parsimony/graph/graph.h"

namespace parsimony {

/// A node together with what is known about its operands.
class NodeView {
 public:
  NodeView(const Graph& graph, const Node& node, const Facts& facts)
      : graph_(graph), node_(node), facts_(facts) {}

  /// A view of another node of the same graph.
  NodeView beside(NodeId other) const { return {graph_, graph_.node(other), facts_}; }

  const Graph& graph() const { return graph_; }
  const Node& node() const { return node_; }
  int opset() const { return node_.opset; }
  const std::string& label() const { return label_of(graph_, node_); }

  int inputs() const { return static_cast<int>(node_.inputs.size()); }
  int outputs() const { return static_cast<int>(node_.outputs.size()); }
  ValueId input(int i) const;   ///< kNone beyond the end
  ValueId output(int i) const;  ///< kNone beyond the end
  bool has_input(int i) const { return input(i) != kNone; }

  /// Null if unknown or absent.
  const Shape* shape(ValueId value) const;
  const Shape* in_shape(int i) const { return shape(input(i)); }
  const Shape* out_shape(int i) const { return shape(output(i)); }
  const HostTensor* constant(int i) const;
  bool computed(ValueId value) const;
  /// See `Facts::may_assume`.
  bool may_assume() const { return facts_.may_assume; }
  /// Does an operand or a result have an unknown shape? It could be tied to anything.
  bool has_unknown_shape() const;

  // Unlike the functions of graph/attributes.h these reject an attribute of another type.
  const Attribute* find(std::string_view name) const;
  int64_t attr(std::string_view name, int64_t fallback) const;
  std::string attr(std::string_view name, std::string_view fallback) const;
  std::vector<int64_t> attrs(std::string_view name) const;  ///< empty if absent
  /// Integers that older opsets keep in an attribute and newer ones in input `i`.
  std::optional<std::vector<int64_t>> attr_or_input(std::string_view name, int i) const;

 private:
  const Graph& graph_;
  const Node& node_;
  const Facts& facts_;
};

/// A change to one integer operand or attribute that the smaller shapes require.
struct Patch {
  NodeId node = kNone;
  int input = -1;    ///< operand to replace; -1: the attribute `what`
  std::string what;  ///< operand or attribute name
  HostTensor from;
  HostTensor to;
};

/// The view that a patch function gets: the node before and after, and which indices are kept.
class PatchView {
 public:
  PatchView(const NodeView& node_before, const NodeView& node_after,
            const std::function<const std::vector<int64_t>*(ValueId, int)>& kept,
            std::vector<Patch>& patches)
      : before(node_before), after(node_after), kept_(kept), patches_(patches) {}

  const NodeView& before;
  const NodeView& after;

  /// Ascending kept indices of a dimension; null if all are kept.
  const std::vector<int64_t>* kept(ValueId value, int dim) const { return kept_(value, dim); }

  /// Requests other integers in attribute `name`; an empty `to` removes the attribute.
  void set_attribute(std::string_view name, const std::vector<int64_t>& from,
                     const std::vector<int64_t>& to);
  /// Requests another number in attribute `name`; `from` is its value, possibly the default.
  void set_number(std::string_view name, double from, double to);
  void set_input(int input, std::string_view name, const HostTensor& to);
  /// Replaces an operand of another node that supplies these integers: an input of a Concat.
  void set_input_of(NodeId node, int input, std::string_view name, const HostTensor& from,
                    const HostTensor& to);
  /// Sets the integers in attribute `name` or operand `input`, whichever the node has; does nothing
  /// if they are already equal.
  void set_attr_or_input(std::string_view name, int input, const std::vector<int64_t>& to);

 private:
  const std::function<const std::vector<int64_t>*(ValueId, int)>& kept_;
  std::vector<Patch>& patches_;
};

/// Patches the attributes that the notation binds to the size of a label, if the label shrank.
void patch_bindings(PatchView& view);

}  // namespace parsimony
