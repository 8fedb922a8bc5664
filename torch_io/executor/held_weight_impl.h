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
  /// The same of some rows, which these are. A row is all that has one index of the first axis.
  using RowEdit = std::function<void(const at::Tensor& rows, const Ints& which)>;

  at::Tensor tensor;  ///< what the module registered; undefined where `read` is
  /// Reads rows anew, for every node that needs them; halves as floats if `widened`.
  std::function<at::Tensor(const Ints& rows, bool widened)> read;
  Ints dims;
  std::vector<std::pair<int64_t, at::Tensor>> kept;  ///< of an axis: which indices stay, boolean
  std::vector<Edit> edits;                           ///< of what was read
  std::vector<RowEdit> row_edits;                    ///< after those
  bool own_type = false;                             ///< the edits are of elements as stored

  /// Which of the axis' indices stay, boolean; undefined if all.
  at::Tensor flags(int64_t axis) const;
  /// Flags of one axis in the weight's shape, without memory of that size.
  at::Tensor spread(int64_t axis, const at::Tensor& stays) const;
  /// Which elements are there, of the weight's shape; undefined where all are.
  at::Tensor present() const;
  /// Those that are there, in their order.
  Ints present_rows() const;
  /// The tensor, edited.
  at::Tensor load(bool widened) const;
  /// Some of its rows, edited; halves as floats. Only where `comes_in_rows`.
  at::Tensor load_rows(const Ints& rows) const;
  bool comes_in_rows() const { return read && edits.empty() && !dims.empty(); }
  /// Now, or whenever it is read.
  void edit(Edit how);
  void edit(RowEdit how);
};

}  // namespace parsimony::executor
