#include "parsimony/programs/element_types.h"

#include <algorithm>
#include <array>

namespace parsimony::programs {
namespace {

struct Row {
  DType dtype;
  int64_t scalar_type;  ///< @source c10/core/ScalarType.h
};

constexpr auto kRows = std::to_array<Row>({
    {DType::kUInt8, 0},
    {DType::kInt8, 1},
    {DType::kInt16, 2},
    {DType::kInt32, 3},
    {DType::kInt64, 4},
    {DType::kFloat16, 5},
    {DType::kFloat32, 6},
    {DType::kFloat64, 7},
    {DType::kBool, 11},
    {DType::kBFloat16, 15},
});

}  // namespace

DType dtype_of_torch(int64_t scalar_type) {
  const auto* found = std::ranges::find(kRows, scalar_type, &Row::scalar_type);
  return found == kRows.end() ? DType::kUnknown : found->dtype;
}

int64_t torch_type_of(DType type) {
  const auto* found = std::ranges::find(kRows, type, &Row::dtype);
  return found == kRows.end() ? -1 : found->scalar_type;
}

}  // namespace parsimony::programs
