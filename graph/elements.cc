#include "parsimony/graph/elements.h"

#include <cstring>

#include "parsimony/graph/element_type_impl.h"

namespace parsimony {

std::vector<std::byte> dense_bytes(const Weight& weight) {
  const size_t size = size_of(weight.dtype);
  const int64_t count = weight.count();
  std::vector<std::byte> bytes(count * size);
  for (int64_t i = 0; i < count; ++i) {
    std::memcpy(bytes.data() + i * size, weight.data + i * weight.stride, size);
  }
  return bytes;
}

ReadNumber reader_of(DType type) {
  if (size_of(type) == 0) return nullptr;
  return with_element_type(type, []<typename T>(T) -> ReadNumber {
    return [](const std::byte* element) {
      T value;
      std::memcpy(&value, element, sizeof value);
      return static_cast<double>(value);
    };
  });
}

void write_number(double value, DType type, std::byte* element) {
  const auto write = [&](auto number) { std::memcpy(element, &number, sizeof number); };
  if (is_small_float(type)) return write(nearest_small_float(type, value));
  const auto single = static_cast<float>(value);
  switch (type) {
    case DType::kFloat64:
      return write(value);
    case DType::kFloat16:
      return write(Eigen::half(single));
    case DType::kBFloat16:
      return write(Eigen::bfloat16(single));
    default:
      return write(single);
  }
}

double rounded(DType type, double value) {
  if (is_small_float(type)) {
    return static_cast<double>(small_floats(type)[nearest_small_float(type, value)]);
  }
  const auto single = static_cast<float>(value);
  switch (type) {
    case DType::kFloat32:
      return static_cast<double>(single);
    case DType::kFloat16:
      return static_cast<double>(Eigen::half(single));
    case DType::kBFloat16:
      return static_cast<double>(Eigen::bfloat16(single));
    default:
      return value;
  }
}

}  // namespace parsimony
