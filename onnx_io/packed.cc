#include "parsimony/onnx_io/packed_impl.h"

namespace parsimony::onnx_io {

int64_t file_bytes(DType dtype, int64_t count) {
  return is_packed(dtype) ? (count * bits_of(dtype) + 7) / 8 : count * size_of(dtype);
}

std::vector<std::byte> unpacked(const std::byte* data, int64_t stride, DType dtype, int64_t count) {
  const auto bits = static_cast<int>(bits_of(dtype));
  const int64_t each = 8 / bits;
  const bool is_signed = dtype == DType::kInt4 || dtype == DType::kInt2;
  const int mask = (1 << bits) - 1;
  const int sign = is_signed ? 1 << (bits - 1) : 0;
  std::vector<std::byte> elements(count);
  for (int64_t i = 0; i < count; ++i) {
    const auto shared = std::to_integer<int>(data[i / each * stride]);
    const int code = shared >> (i % each * bits) & mask;
    elements[i] = static_cast<std::byte>((code ^ sign) - sign);
  }
  return elements;
}

std::vector<std::byte> packed(std::span<const std::byte> elements, DType dtype) {
  const auto bits = static_cast<size_t>(bits_of(dtype));
  const size_t each = 8 / bits;
  const auto mask = static_cast<std::byte>((1U << bits) - 1);
  std::vector<std::byte> bytes(file_bytes(dtype, std::ssize(elements)));
  for (size_t i = 0; i < elements.size(); ++i) {
    bytes[i / each] |= (elements[i] & mask) << (i % each * bits);
  }
  return bytes;
}

}  // namespace parsimony::onnx_io
