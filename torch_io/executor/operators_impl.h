// The supported operators: their kernels, and the presence of results when elements of operands are
// absent.
#pragma once

#include <span>
#include <string_view>

#include "parsimony/torch_io/executor/call_impl.h"

namespace parsimony::executor {

/// One tensor per output; undefined or fewer if the node does not use the last ones.
using Kernel = Tensors (*)(const Call& call);

struct Operator;
/// Presence of each output, undefined if everything is present. Called if some operand has absent
/// elements.
using Presence = Tensors (*)(const Operator& op, const Call& call, const Tensors& outputs);

struct Operator {
  std::string_view op = {};
  Kernel kernel = nullptr;
  Presence presence = nullptr;  ///< none: does not support absent elements
  unsigned data = 1;            ///< data operands, for `moved` and `contracted`; one bit each
  unsigned fixed = 0;           ///< operands that are settings, which are not trained; one bit each
  bool own_types = false;       ///< the result's type differs from the operands'
  std::string_view domain = {};
};

/// Sorted by domain and name.
std::span<const Operator> operators();
const Operator* find_operator(std::string_view domain, std::string_view op);

/// Present where all operands are, broadcast.
Tensors elementwise(const Operator& op, const Call& call, const Tensors& outputs);
/// As the first operand.
Tensors as_first(const Operator& op, const Call& call, const Tensors& outputs);
/// Elements of the data operands are moved; the kernel itself determines where.
Tensors moved(const Operator& op, const Call& call, const Tensors& outputs);
/// Sums of products: present if any product is. The last operand may be a bias.
Tensors contracted(const Operator& op, const Call& call, const Tensors& outputs);
/// The same by rows and columns, for a matrix that is a weight or completely present.
Tensors multiplied(const Operator& op, const Call& call, const Tensors& outputs);
/// As `contracted`; a window that covers no element has the presence of its channel.
Tensors convolved(const Operator& op, const Call& call, const Tensors& outputs);
/// The same for the data operands only, ignoring scales, zero points and activations.
Tensors contracted_plainly(const Operator& op, const Call& call, const Tensors& outputs);
Tensors convolved_plainly(const Operator& op, const Call& call, const Tensors& outputs);
/// Concatenates the third, sixth, … operand.
Tensors joined_integers(const Operator& op, const Call& call, const Tensors& outputs);
/// Present if any of the reduced elements of the first operand is.
Tensors reduced(const Operator& op, const Call& call, const Tensors& outputs);
Tensors pooled(const Operator& op, const Call& call, const Tensors& outputs);
Tensors pooled_globally(const Operator& op, const Call& call, const Tensors& outputs);
/// Padding along an axis is present if anything along that axis is.
Tensors padded(const Operator& op, const Call& call, const Tensors& outputs);
/// Hidden units whose gates are all absent are absent.
Tensors recurrent(const Operator& op, const Call& call, const Tensors& outputs);
Tensors arg_reduced(const Operator& op, const Call& call, const Tensors& outputs);
/// Sizes and the like: everything is present.
Tensors everywhere(const Operator& op, const Call& call, const Tensors& outputs);

}  // namespace parsimony::executor
