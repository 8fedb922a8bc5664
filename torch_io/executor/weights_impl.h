// The weights of a program: read on demand, whole or by rows; stored and masked.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "parsimony/graph/graph.h"
#include "parsimony/speedup/masked_values.h"
#include "parsimony/torch_io/executor/call_impl.h"

namespace parsimony::executor {

/// Reads a weight, or some of its rows, on demand. Rows are slices along the first axis; a scalar
/// is one row. Pages are released after reading; the graph's memory must stay valid.
class WeightReader {
 public:
  WeightReader(const Graph& graph, const Weight& weight);

  /// Returns the rows in this order; float16 as float32 if `widened`.
  at::Tensor operator()(const Ints& rows, bool widened) const;
  /// Returns the weight as it is stored.
  at::Tensor whole() const;

 private:
  at::Tensor read(const Ints& rows, bool widened) const;
  Weight part(int64_t first, int64_t count) const;
  std::byte* copy(int64_t first, int64_t count, std::byte* out) const;

  Weight weight_;
  std::shared_ptr<const GraphSource> source_;
  bool made_;  ///< materialised by the source, without data to view
};

/// Returns 0, 1, … for all rows.
Ints every_row(const Shape& dims);

struct StoredWeight {
  at::Tensor tensor;  ///< registered with the module; undefined if streamed by `read`
  /// Reads rows on demand; float16 as float32 if `widened`.
  std::function<at::Tensor(const Ints& rows, bool widened)> read;
  Ints dims;
  std::vector<std::pair<int64_t, at::Tensor>> kept;  ///< per axis: the kept indices, boolean
  std::vector<TensorMask> masks;                     ///< applied to what is read

  /// Returns the kept indices of the axis, boolean; undefined if all.
  at::Tensor flags(int64_t axis) const;
  /// Expands flags of one axis to the weight's shape, without allocating that size.
  at::Tensor spread(int64_t axis, const at::Tensor& stays) const;
  /// Returns the present elements, in the weight's shape; undefined if all.
  at::Tensor present() const;
  /// Returns the present rows in order.
  Ints present_rows() const;
  /// Returns the tensor, masked.
  at::Tensor load(bool widened) const;
  /// Returns some of its rows, masked; float16 as float32. Requires `comes_in_rows`.
  at::Tensor load_rows(const Ints& rows) const;
  /// Whether slices can be masked row by row.
  bool comes_in_rows() const;
  /// Applies the mask now, or whenever the weight is read. The mask's plan must outlive this.
  void add(const TensorMask& mask);
};

}  // namespace parsimony::executor
