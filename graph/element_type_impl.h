// The C++ types of elements. Private to graph/.
#pragma once

#include <Eigen/Core>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "parsimony/base/types.h"
#include "parsimony/graph/graph.h"

namespace parsimony {

/// An element of a type that C++ has not.
template <DType kType>
struct SmallFloat {
  uint8_t code = 0;
  template <typename Number>
  explicit operator Number() const {
    return static_cast<Number>(small_floats(kType)[code]);
  }
};

/// Calls `use` with a value of the type that holds the elements. Booleans and integers of fewer
/// than 8 bits are bytes; what is not a number counts as int64.
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
    case DType::kFloat8E4M3FN:
      return use(SmallFloat<DType::kFloat8E4M3FN>{});
    case DType::kFloat8E4M3FNUZ:
      return use(SmallFloat<DType::kFloat8E4M3FNUZ>{});
    case DType::kFloat8E5M2:
      return use(SmallFloat<DType::kFloat8E5M2>{});
    case DType::kFloat8E5M2FNUZ:
      return use(SmallFloat<DType::kFloat8E5M2FNUZ>{});
    case DType::kFloat4E2M1:
      return use(SmallFloat<DType::kFloat4E2M1>{});
    case DType::kInt2:
    case DType::kInt4:
    case DType::kInt8:
      return use(int8_t{});
    case DType::kInt16:
      return use(int16_t{});
    case DType::kInt32:
      return use(int32_t{});
    case DType::kBool:
    case DType::kUInt2:
    case DType::kUInt4:
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

/// The elements in the tensor's own type.
std::vector<std::byte> to_bytes(const HostTensor& tensor);

}  // namespace parsimony
