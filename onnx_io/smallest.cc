#include <algorithm>
#include <cstring>
#include <vector>

#include "parsimony/onnx_io/model_file_impl.h"

namespace parsimony::onnx_io {
namespace {

template <typename T>
T load(const std::byte* element) {
  T value;
  std::memcpy(&value, element, sizeof(T));
  return value;
}

template <typename Signed>
uint64_t absolute(const std::byte* element) {
  const auto value = static_cast<int64_t>(load<Signed>(element));
  return value < 0 ? 0 - static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
}

}  // namespace

uint64_t magnitude_of(DType dtype, const std::byte* element) {
  switch (dtype) {  // without its sign, an IEEE number orders as its bits do
    case DType::kFloat32:
      return load<uint32_t>(element) & 0x7fffffffU;
    case DType::kFloat64:
      return load<uint64_t>(element) & 0x7fffffffffffffffU;
    case DType::kFloat16:
    case DType::kBFloat16:
      return load<uint16_t>(element) & 0x7fffU;
    case DType::kFloat8E4M3FN:
    case DType::kFloat8E4M3FNUZ:
    case DType::kFloat8E5M2:
    case DType::kFloat8E5M2FNUZ:
      return load<uint8_t>(element) & 0x7fU;
    case DType::kFloat4E2M1:
      return load<uint8_t>(element) & 0x7U;
    case DType::kInt2:
    case DType::kInt4:
    case DType::kInt8:
      return absolute<int8_t>(element);
    case DType::kInt16:
      return absolute<int16_t>(element);
    case DType::kInt32:
      return absolute<int32_t>(element);
    case DType::kInt64:
      return absolute<int64_t>(element);
    case DType::kUInt16:
      return load<uint16_t>(element);
    case DType::kUInt32:
      return load<uint32_t>(element);
    case DType::kUInt64:
      return load<uint64_t>(element);
    default:
      return load<uint8_t>(element);
  }
}

SmallestElements smallest(DType dtype, int64_t stride, int64_t count,
                          const std::optional<SmallestElements>& zeros,
                          const ForEachElementRun& for_each) {
  // Radix selection: 16 bits of the expected magnitude per pass, from the top.
  constexpr int kDigit = 16;
  const auto visit = [&](const auto& take) {
    for_each([&](const std::byte* first, int64_t elements, int64_t index) {
      for (int64_t i = 0; i < elements; ++i) {
        const uint64_t magnitude = magnitude_of(dtype, first + i * stride);
        take(zeros && zeros->contains(magnitude, index + i) ? 0 : magnitude, index + i);
      }
    });
  };
  int64_t rank = count - 1;  // among the elements that share the digits found so far
  uint64_t found = 0;
  const int bits = static_cast<int>(8 * size_of(dtype));
  for (int shift = std::max(0, bits - kDigit); shift >= 0; shift -= kDigit) {
    std::vector<int64_t> histogram(size_t{1} << kDigit);
    const bool first_pass = shift + kDigit >= bits;
    visit([&](uint64_t magnitude, int64_t) {
      const uint64_t digits = magnitude >> shift;
      if (first_pass || digits >> kDigit == found) ++histogram[digits & 0xffffU];
    });
    size_t digit = 0;
    for (; rank >= histogram[digit]; ++digit) rank -= histogram[digit];
    found = (found << kDigit) | digit;
  }
  SmallestElements chosen{found, -1};
  visit([&](uint64_t magnitude, int64_t index) {
    if (magnitude == found && rank-- >= 0) chosen.index = index;
  });
  return zeros ? std::max(chosen, *zeros) : chosen;
}

void set_zero(std::byte* first, int64_t count, int64_t index, DType dtype, int64_t stride,
              const SmallestElements& chosen) {
  for (int64_t i = 0; i < count; ++i) {
    std::byte* element = first + i * stride;
    if (!chosen.contains(magnitude_of(dtype, element), index + i)) continue;
    std::memset(element, 0, stride);
  }
}

}  // namespace parsimony::onnx_io
