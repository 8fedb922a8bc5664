// Reads a weight, or some of its rows, on demand.
#pragma once

#include <cstddef>
#include <memory>

#include "parsimony/graph/graph.h"
#include "parsimony/torch_io/executor/call_impl.h"

namespace parsimony::executor {

/// Rows are slices along the first axis; a scalar is one row. Pages are released after reading; the
/// graph's memory must stay valid.
class WeightReader {
 public:
  WeightReader(const Graph& graph, const Weight& weight);

  /// The rows in this order; float16 as float32 if `widened`.
  at::Tensor operator()(const Ints& rows, bool widened) const;
  /// As it is stored.
  at::Tensor whole() const;

 private:
  at::Tensor read(const Ints& rows, bool widened) const;
  Weight part(int64_t first, int64_t count) const;
  std::byte* copy(int64_t first, int64_t count, std::byte* out) const;

  Weight weight_;
  std::shared_ptr<const GraphSource> source_;
  bool made_;  ///< materialised by the source, without data to view
};

/// 0, 1, …, one for each row.
Ints every_row(const Shape& dims);

}  // namespace parsimony::executor
