// The supported operators: their kernels, and the presence of results when elements of operands are
// absent.
#pragma once

#include <string_view>

#include "parsimony/torch_io/executor/call_impl.h"

namespace parsimony::executor {

/// One tensor per output; undefined or fewer if the node does not use the last ones.
using Kernel = Tensors(const Call& call);

struct Operator;
/// Presence of each output, undefined if everything is present. Called if some operand has absent
/// elements.
using Presence = Tensors(const Operator& op, const Call& call, const Tensors& outputs);

struct Operator {
  std::string_view op = {};
  Kernel* kernel = nullptr;
  Presence* presence = nullptr;  ///< none: does not support absent elements
  unsigned data = 1;             ///< data operands, for `moved` and `contracted`; one bit each
  unsigned fixed = 0;      ///< operands that are settings, which are not trained; one bit each
  bool own_types = false;  ///< the result's type differs from the operands'
  std::string_view domain = {};
};

/// Null for an unknown operator.
const Operator* find_operator(std::string_view domain, std::string_view op);

/// Present where all operands are, broadcast.
Presence elementwise;
/// As the first operand.
Presence as_first;
/// Elements of the data operands are moved; the kernel itself determines where.
Presence moved;
/// Sums of products: present if any product is. The last operand may be a bias.
Presence contracted;
/// The same by rows and columns, for a matrix that is a weight or completely present.
Presence multiplied;
/// As `contracted`; a window that covers no element has the presence of its channel.
Presence convolved;
/// The same for the data operands only, ignoring scales, zero points and activations.
Presence contracted_plainly;
Presence convolved_plainly;
/// Concatenates the third, sixth, … operand.
Presence joined_integers;
/// Present if any of the reduced elements of the first operand is.
Presence reduced;
Presence pooled;
Presence pooled_globally;
/// Padding along an axis is present if anything along that axis is.
Presence padded;
/// Hidden units whose gates are all absent are absent.
Presence recurrent;
Presence arg_reduced;
/// Sizes and the like: everything is present.
Presence everywhere;

}  // namespace parsimony::executor
