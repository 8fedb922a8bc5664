// A weight of a program.
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
  /// The same for the given rows, which are slices along the first axis.
  using RowEdit = std::function<void(const at::Tensor& rows, const Ints& which)>;

  at::Tensor tensor;  ///< registered with the module; undefined if streamed by `read`
  /// Reads rows on demand; float16 as float32 if `widened`.
  std::function<at::Tensor(const Ints& rows, bool widened)> read;
  Ints dims;
  std::vector<std::pair<int64_t, at::Tensor>> kept;  ///< per axis: the kept indices, boolean
  std::vector<Edit> edits;                           ///< applied to what was read
  std::vector<RowEdit> row_edits;                    ///< applied afterwards
  bool own_type = false;                             ///< the edits apply to elements as stored

  /// The kept indices of the axis, boolean; undefined if all.
  at::Tensor flags(int64_t axis) const;
  /// Flags of one axis expanded to the weight's shape, without allocating that size.
  at::Tensor spread(int64_t axis, const at::Tensor& stays) const;
  /// The present elements, in the weight's shape; undefined if all.
  at::Tensor present() const;
  /// The present rows in order.
  Ints present_rows() const;
  /// The tensor, edited.
  at::Tensor load(bool widened) const;
  /// Some of its rows, edited; float16 as float32. Requires `comes_in_rows`.
  at::Tensor load_rows(const Ints& rows) const;
  bool comes_in_rows() const { return read && edits.empty() && !dims.empty(); }
  /// Applies the edit now, or whenever the weight is read.
  void edit(Edit how);
  void edit(RowEdit how);
};

}  // namespace parsimony::executor
