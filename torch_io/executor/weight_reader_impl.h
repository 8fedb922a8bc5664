// Reads a weight, or some of it, whenever it is asked for.
#pragma once

#include <cstddef>
#include <memory>

#include "parsimony/graph/graph.h"
#include "parsimony/torch_io/executor/call_impl.h"

namespace parsimony::executor {

/// A row is all that has one index of the first axis; a scalar is one row. What was read need not
/// stay resident in the memory behind the graph, whose bytes must stay.
class WeightReader {
 public:
  WeightReader(const Graph& graph, const Weight& weight);

  /// In this order; halves as floats if `widened`.
  at::Tensor operator()(const Ints& rows, bool widened) const;
  /// As it is stored.
  at::Tensor whole() const;

 private:
  at::Tensor read(const Ints& rows, bool widened) const;
  Weight part(int64_t first, int64_t count) const;
  std::byte* copy(int64_t first, int64_t count, std::byte* out) const;
  void release(const Ints& rows) const;

  Weight weight_;
  std::shared_ptr<const GraphSource> source_;
  bool made_;  ///< by the source, which has no data to view
};

/// 0, 1, …, one for each row.
Ints every_row(const Shape& dims);

}  // namespace parsimony::executor
