// The C++ types of elements. Private to graph/.
#pragma once

#include <Eigen/Core>
#include <cstdint>

#include "parsimony/base/types.h"

namespace parsimony {

/// Calls `use` with a value of the type that holds the elements. Booleans are bytes; what is not a
/// number counts as int64.
template <typename Use>
auto with_element_type(DType type, const Use& use) {
  switch (type) {
    case DType::kFloat32:
      return use(float{});
    case DType::kFloat64:
      return use(double{});
    case DType::kFloat16:
      return use(Eigen::half{});
    case DType::kBFloat16:
      return use(Eigen::bfloat16{});
    case DType::kInt8:
      return use(int8_t{});
    case DType::kInt16:
      return use(int16_t{});
    case DType::kInt32:
      return use(int32_t{});
    case DType::kBool:
    case DType::kUInt8:
      return use(uint8_t{});
    case DType::kUInt16:
      return use(uint16_t{});
    case DType::kUInt32:
      return use(uint32_t{});
    case DType::kUInt64:
      return use(uint64_t{});
    default:
      return use(int64_t{});
  }
}

}  // namespace parsimony
