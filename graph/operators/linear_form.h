// The linear form of a layer: the axes of its weight, derived from the operator's notation; and the
// multiply-adds of a node, from the `macs` clause.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "parsimony/graph/operators/match.h"
#include "parsimony/graph/operators/schema.h"

namespace parsimony {

/// y = w · x + b along the axes of one weight.
struct LinearForm {
  LinearKind kind = LinearKind::kNotLinear;
  int data = 0;             ///< the data operand
  int bias = -1;            ///< the bias operand; -1: none
  int in_axis = 0;          ///< of the weight: the contracted axis
  int out_axis = 0;         ///< the first output axis of the weight
  std::vector<int> kernel;  ///< positions of a convolution's kernel
  int64_t groups = 1;       ///< in and out axis consist of this many independent parts
  bool plain = false;       ///< floating point, with nothing applied after the sum
};

/// Returns how the node multiplies by operand `weight`, of the given rank. Empty if it is not a
/// weight operand, the rank does not match, or it has no contracted axis: lookups, equations.
std::optional<LinearForm> linear_form(const Node& node, int weight, size_t rank);

/// The usual name of a layer, from the rank of its weight: "Linear", "Conv2d".
std::string layer_word(size_t rank);

/// The node's operands that may be weights, ascending.
std::vector<int> weight_operands(const Node& node);

/// The dimension of operand `operand`, of the given rank, with which the vector `along` (a scale or
/// a bias) is aligned; empty if the notation relates them otherwise.
std::optional<int> axis_along(const Node& node, int operand, int along, size_t rank);

/// The node's multiply-adds as a sum of products of axis sizes.
struct MacsFormula {
  using Factor = LabelPosition;  ///< the kept coordinates of one label
  using Product = std::vector<Factor>;
  std::vector<Product> products;
};

/// Empty if the operator has no multiply-adds, or more than 2^50.
std::optional<MacsFormula> macs_formula(const NodeView& view);

/// Multiply-adds of one node; 0 where the operator has none.
int64_t macs(const NodeView& view);

/// May the node have multiply-adds that `macs` does not count? True if its operator or a shape is
/// unknown, its form has no formula, there are more than 2^50, or its bodies are not analysed.
bool hides_macs(const NodeView& view);

}  // namespace parsimony
