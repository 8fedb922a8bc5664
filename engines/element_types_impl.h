// Element types by ONNX's numbers. Private to engines/.
#pragma once

#include <array>
#include <optional>
#include <utility>

#include "parsimony/base/types.h"

namespace parsimony::runtime {

/// @source TensorProto.DataType of ONNX, which ONNX Runtime's interface follows
inline constexpr auto kElementTypes = std::to_array<std::pair<int, DType>>({
    {1, DType::kFloat32},
    {2, DType::kUInt8},
    {3, DType::kInt8},
    {4, DType::kUInt16},
    {5, DType::kInt16},
    {6, DType::kInt32},
    {7, DType::kInt64},
    {8, DType::kString},
    {9, DType::kBool},
    {10, DType::kFloat16},
    {11, DType::kFloat64},
    {12, DType::kUInt32},
    {13, DType::kUInt64},
    {16, DType::kBFloat16},
});

/// Empty for strings, which have no fixed size, and for unknown types.
inline std::optional<int> code_of(DType type) {
  for (const auto& [code, known] : kElementTypes) {
    if (known == type && size_of(type) > 0) return code;
  }
  return std::nullopt;
}

inline DType dtype_of(int code) {
  for (const auto& [known, type] : kElementTypes) {
    if (known == code) return type;
  }
  return DType::kUnknown;
}

}  // namespace parsimony::runtime
