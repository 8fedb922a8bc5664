// How zeros and constants travel through operators: one transfer function over one lattice.
#pragma once

#include <cstdint>
#include <span>

#include "parsimony/graph/operators/schema.h"

namespace parsimony {

/// What a slice of a value holds; what is known of several together is the least of them.
enum class Content : uint8_t {
  kVaries,    ///< may depend on the network's inputs
  kConstant,  ///< the same for all inputs; elements of the slice may differ from each other
  kZero,
};

/// What a slice of a result sees of one operand.
struct OperandSlice {
  int operand = 0;  ///< among the node's inputs
  Content content = Content::kVaries;
  bool has_axis = false;  ///< else `content` is that of all of it
  bool absent = false;    ///< nothing of it comes here: another piece of a Concat does
  bool divides = false;
};

/// What a node does to slices.
class Transfer {
 public:
  explicit Transfer(const NodeView& view)
      : schema_(schema_of(view.node())), behaviour_(zero_behaviour(view)) {}

  ZeroBehaviour behaviour() const { return behaviour_; }

  /// What a slice of a result holds, from all operands that there are, in their order. Sound, not
  /// complete.
  Content operator()(std::span<const OperandSlice> operands) const;

 private:
  const OpSchema& schema_;
  const ZeroBehaviour behaviour_;
};

}  // namespace parsimony
