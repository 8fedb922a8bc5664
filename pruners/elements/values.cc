#include "parsimony/pruners/elements/values.h"

#include <Eigen/Core>
#include <cstring>

namespace parsimony::elements {

namespace {

template <typename T>
void write(T value, int64_t index, std::span<std::byte> bytes) {
  std::memcpy(bytes.data() + index * sizeof value, &value, sizeof value);
}

}  // namespace

std::vector<std::byte> bytes_of(const Weight& weight) {
  const size_t size = size_of(weight.dtype);
  const size_t count = weight.count();
  std::vector<std::byte> bytes(size * count);
  for (size_t i = 0; i < count; ++i) {
    const std::byte* from = weight.data + static_cast<int64_t>(i) * weight.stride;
    std::memcpy(bytes.data() + i * size, from, size);
  }
  return bytes;
}

void put(double value, DType type, int64_t index, std::span<std::byte> bytes) {
  switch (type) {
    case DType::kFloat64:
      return write(value, index, bytes);
    case DType::kFloat16:
      return write(static_cast<Eigen::half>(static_cast<float>(value)), index, bytes);
    case DType::kBFloat16:
      return write(static_cast<Eigen::bfloat16>(static_cast<float>(value)), index, bytes);
    default:
      return write(static_cast<float>(value), index, bytes);
  }
}

}  // namespace parsimony::elements
