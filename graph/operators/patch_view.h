// Patches of the integers inside a model that follow from shapes.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "parsimony/graph/operators/node_view.h"

namespace parsimony {

/// A change to one integer operand or attribute that the smaller shapes require.
struct Patch {
  NodeId node = kNone;
  int input = -1;    ///< operand to replace; -1: the attribute `what`
  std::string what;  ///< operand or attribute name
  HostTensor from;
  HostTensor to;
};

/// What a patch function sees: the node before and after, and which indices are kept.
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
