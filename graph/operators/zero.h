// Zero and constant propagation through operators: one transfer function over one lattice.
#pragma once

#include <cstdint>
#include <span>

#include "parsimony/graph/operators/node_view.h"
#include "parsimony/graph/operators/schema.h"

namespace parsimony {

/// The lattice: what a slice of a value holds; the meet of several is the smallest.
enum class SliceValue : uint8_t {
  kVaries,    ///< may depend on the network's inputs
  kConstant,  ///< the same for all inputs; elements of the slice may differ from each other
  kZero,
};

/// One operand as seen from a slice of a result.
struct OperandSlice {
  int operand = 0;  ///< among the node's inputs
  SliceValue content = SliceValue::kVaries;
  bool has_axis = false;  ///< otherwise `content` describes all of it
  /// It does not contribute here: the slice belongs to another input of a Concat.
  bool absent = false;
  bool divides = false;
};

/// The transfer function of a node.
class Transfer {
 public:
  explicit Transfer(const NodeView& view)
      : schema_(schema_of(view.node())), behaviour_(zero_behaviour(view)) {}

  ZeroBehaviour behaviour() const { return behaviour_; }

  /// Returns what a result's slice holds, given all present operands in order. Sound, not complete.
  SliceValue operator()(std::span<const OperandSlice> operands) const;

 private:
  const OpSchema& schema_;
  const ZeroBehaviour behaviour_;
};

}  // namespace parsimony
