// A weight as a program computes with it.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <utility>
#include <vector>

#include "parsimony/torch_io/executor/call_impl.h"

namespace parsimony::executor {

struct HeldWeight {
  /// Changes elements of the weight in place.
  using Edit = std::function<void(const at::Tensor& whole, const HeldWeight& of)>;

  at::Tensor tensor;  ///< what the module registered; undefined where `read` is
  /// Reads it anew, for every node that needs it; halves as floats if `widened`.
  std::function<at::Tensor(bool widened)> read;
  Ints dims;
  std::vector<std::pair<int64_t, at::Tensor>> kept;  ///< of an axis: which indices stay, boolean
  std::vector<Edit> edits;                           ///< of what was read
  bool own_type = false;                             ///< the edits are of elements as stored

  /// Which of the axis' indices stay, boolean; undefined if all.
  at::Tensor flags(int64_t axis) const;
  /// Flags of one axis in the weight's shape, without memory of that size.
  at::Tensor spread(int64_t axis, const at::Tensor& stays) const;
  /// Which elements are there, of the weight's shape; undefined where all are.
  at::Tensor present() const;
  /// The tensor, edited.
  at::Tensor load(bool widened) const;
  /// Now, or whenever it is read.
  void edit(Edit how);
};

}  // namespace parsimony::executor
