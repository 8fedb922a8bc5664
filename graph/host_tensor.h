// Small tensors whose values are known when the graph is read: shapes, axes, indices, scales.
#pragma once

#include <cstdint>
#include <vector>

#include "parsimony/base/types.h"

namespace parsimony {

/// A constant that the analysis computes with. Integers and booleans are stored in `ints`, floating
/// point numbers in `floats`; the other vector is empty. Elements are in row-major order.
struct HostTensor {
  DType dtype = DType::kInt64;
  Shape dims;
  std::vector<int64_t> ints;
  std::vector<double> floats;

  static HostTensor scalar(int64_t value, DType dtype = DType::kInt64);
  /// A scalar; without its fraction if the type is one of integers.
  static HostTensor of(double number, DType dtype);
  static HostTensor vector(std::vector<int64_t> values, DType dtype = DType::kInt64);

  bool floating() const { return is_floating(dtype); }
  int64_t count() const { return static_cast<int64_t>(floating() ? floats.size() : ints.size()); }
  double number(int64_t i) const { return floating() ? floats[i] : static_cast<double>(ints[i]); }

  bool operator==(const HostTensor&) const = default;
};

}  // namespace parsimony
