// The operators that can be run: what computes each, and which elements of its results exist when
// elements of its operands do not.
#pragma once

#include <span>
#include <string_view>

#include "parsimony/torch_io/executor/call_impl.h"

namespace parsimony::executor {

/// One tensor per output; undefined, or fewer, where the node does not name the last ones.
using Kernel = Tensors (*)(const Call& call);

struct Operator;
/// Presence of each output, undefined where all is there. Called if some operand has absences.
using Presence = Tensors (*)(const Operator& op, const Call& call, const Tensors& outputs);

struct Operator {
  std::string_view op = {};
  Kernel kernel = nullptr;
  Presence presence = nullptr;  ///< none: cannot be run on operands with absences
  unsigned data = 1;            ///< operands that `moved` and `contracted` look at, a bit each
  unsigned fixed = 0;           ///< operands that are settings, hence not trained, a bit each
  bool own_types = false;       ///< its result's type is not that of its operands
  std::string_view domain = {};
};

/// Sorted by domain and name.
std::span<const Operator> operators();
const Operator* find_operator(std::string_view domain, std::string_view op);

/// Present where all operands are, broadcast.
Tensors elementwise(const Operator& op, const Call& call, const Tensors& outputs);
/// As the first operand.
Tensors as_first(const Operator& op, const Call& call, const Tensors& outputs);
/// The elements of the data operands go elsewhere: the kernel says where.
Tensors moved(const Operator& op, const Call& call, const Tensors& outputs);
/// Sums of products: present where any product is. The last operand may be a bias.
Tensors contracted(const Operator& op, const Call& call, const Tensors& outputs);
/// The same of a matrix that is a weight, or all there, by its rows and columns.
Tensors multiplied(const Operator& op, const Call& call, const Tensors& outputs);
/// As `contracted`; where a window touches no element at all, as elsewhere in the channel.
Tensors convolved(const Operator& op, const Call& call, const Tensors& outputs);
/// The same of the data operands alone, whatever stands between them and follows: scales and zero
/// points, activations.
Tensors contracted_plainly(const Operator& op, const Call& call, const Tensors& outputs);
Tensors convolved_plainly(const Operator& op, const Call& call, const Tensors& outputs);
/// Of the third, sixth, … operand, one behind the other.
Tensors joined_integers(const Operator& op, const Call& call, const Tensors& outputs);
/// Present if any element of the first operand that it looks at is.
Tensors reduced(const Operator& op, const Call& call, const Tensors& outputs);
Tensors pooled(const Operator& op, const Call& call, const Tensors& outputs);
Tensors pooled_globally(const Operator& op, const Call& call, const Tensors& outputs);
/// What is added along an axis is present where anything is along that axis.
Tensors padded(const Operator& op, const Call& call, const Tensors& outputs);
/// Hidden units whose gates are all absent are absent.
Tensors recurrent(const Operator& op, const Call& call, const Tensors& outputs);
Tensors arg_reduced(const Operator& op, const Call& call, const Tensors& outputs);
/// Sizes and such: all of it is there.
Tensors everywhere(const Operator& op, const Call& call, const Tensors& outputs);

}  // namespace parsimony::executor
