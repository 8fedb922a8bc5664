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

/// What the slice holds, from all operands that there are, in their order. Sound, not complete.
Content transfer(const NodeView& view, std::span<const OperandSlice> operands);

}  // namespace parsimony
