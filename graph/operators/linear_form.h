// What the axes of a layer's weight are, read from the operator's line.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "parsimony/graph/operators/schema.h"

namespace parsimony {

/// y = w · x + b along the axes of one weight.
struct LinearForm {
  LinearKind kind = LinearKind::kNotLinear;
  int data = 0;             ///< operand that is multiplied
  int bias = -1;            ///< operand that is added; -1: the operator has none
  int in_axis = 0;          ///< of the weight: summed over
  int out_axis = 0;         ///< the first that the result has from the weight
  std::vector<int> kernel;  ///< positions of a convolution's kernel
  int64_t groups = 1;       ///< equal parts of in and out that are layers of their own
  bool plain = false;       ///< floating-point numbers, and nothing behind the sum
};

/// How the node multiplies with operand `weight`, of so many dimensions. Empty where that is no
/// operand for weights, the rank does not fit, or no axis of it is summed over by all: lookups,
/// equations.
std::optional<LinearForm> linear_form(const Node& node, int weight, size_t rank);

/// What people call a layer of which only the weight's rank is known: "Linear", "Conv2d".
std::string layer_word(size_t rank);

/// The operands that may be weights of a layer, ascending; those the node has.
std::vector<int> weight_operands(const Node& node);

/// The dimension of operand `operand`, of so many dimensions, along which the vector `along` lies,
/// a scale or a bias; empty if the line ties them otherwise.
std::optional<int> axis_along(const Node& node, int operand, int along, size_t rank);

}  // namespace parsimony
