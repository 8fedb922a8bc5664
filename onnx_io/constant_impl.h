// Constant nodes, whose numbers stand in one of several attributes.
#pragma once

#include <onnx/onnx_pb.h>

#include <array>
#include <cstddef>
#include <deque>
#include <optional>

#include "parsimony/graph/graph.h"

namespace parsimony::onnx_io {

/// Places for numbers that a message does not hold at a fixed address.
using Scalars = std::deque<std::array<std::byte, 8>>;

/// Index of the attribute that holds the constant; -1 if there is none.
int value_attribute(const onnx::NodeProto& node);

/// A view of value_int, value_ints, value_float or value_floats. Empty for strings and sparse
/// tensors, and for `value`, which is a tensor.
std::optional<Weight> list_constant(const onnx::AttributeProto& attribute, Scalars& scalars);

}  // namespace parsimony::onnx_io
