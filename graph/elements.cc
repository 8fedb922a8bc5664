#include "parsimony/graph/elements.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "parsimony/graph/element_type_impl.h"
#include "parsimony/graph/errors.h"

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

namespace {

/// Rounds to odd: of the two floats around `value` the one whose last bit is set. A shorter type
/// then rounds it as `value` itself; from the nearest float it would round twice.
float rounded_to_odd(double value) {
  const auto nearest = static_cast<float>(value);
  auto bits = std::bit_cast<uint32_t>(nearest);
  const double found = std::fabs(static_cast<double>(nearest));
  const double magnitude = std::fabs(value);
  if (found == magnitude || std::isnan(value) || bits % 2 == 1) return nearest;
  bits = found > magnitude ? bits - 1 : bits + 1;
  return std::bit_cast<float>(bits);
}

}  // namespace

void write_number(double value, DType type, std::byte* element) {
  const auto write = [&](auto number) { std::memcpy(element, &number, sizeof number); };
  if (is_small_float(type)) return write(nearest_small_float(type, value));
  switch (type) {
    case DType::kFloat64:
      return write(value);
    case DType::kFloat16:
      return write(Eigen::half(rounded_to_odd(value)));
    case DType::kBFloat16:
      return write(Eigen::bfloat16(rounded_to_odd(value)));
    default:
      return write(static_cast<float>(value));
  }
}

double rounded(DType type, double value) {
  if (is_small_float(type)) {
    return static_cast<double>(small_floats(type)[nearest_small_float(type, value)]);
  }
  switch (type) {
    case DType::kFloat32:
      return static_cast<double>(static_cast<float>(value));
    case DType::kFloat16:
      return static_cast<double>(Eigen::half(rounded_to_odd(value)));
    case DType::kBFloat16:
      return static_cast<double>(Eigen::bfloat16(rounded_to_odd(value)));
    default:
      return value;
  }
}

namespace {

constexpr int64_t kBlock = 4096;

/// A number is not a NaN if, without its sign, it does not exceed infinity. `Bits` is signed: the
/// processor compares signed integers side by side.
template <typename Bits>
std::optional<int64_t> find(const Weight& weight, Bits infinity) {
  constexpr Bits kMagnitude = std::numeric_limits<Bits>::max();
  const auto magnitude = [](const std::byte* at) {
    Bits bits;
    std::memcpy(&bits, at, sizeof(Bits));
    return static_cast<Bits>(bits & kMagnitude);
  };
  const int64_t count = weight.count();
  const bool packed = weight.stride == static_cast<int64_t>(sizeof(Bits));
  for (int64_t begin = 0; begin < count; begin += kBlock) {
    const int64_t end = std::min(count, begin + kBlock);
    const std::byte* data = weight.data + begin * weight.stride;
    // The largest of a block, without an early exit: the compiler makes vectors of it.
    Bits exceeds = packed ? 0 : 1;
    for (int64_t i = 0; packed && i < end - begin; ++i) {
      exceeds = static_cast<Bits>(
          exceeds |
          static_cast<Bits>(magnitude(data + i * static_cast<int64_t>(sizeof(Bits))) > infinity));
    }
    for (int64_t i = begin; exceeds != 0 && i < end; ++i) {
      if (magnitude(weight.data + i * weight.stride) > infinity) return i;
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<int64_t> find_nan(const Weight& weight) {
  switch (weight.dtype) {
    case DType::kFloat32:
      return find<int32_t>(weight, 0x7F800000);
    case DType::kFloat64:
      return find<int64_t>(weight, 0x7FF0000000000000LL);
    case DType::kFloat16:
      return find<int16_t>(weight, 0x7C00);
    case DType::kBFloat16:
      return find<int16_t>(weight, 0x7F80);
    default:
      return std::nullopt;
  }
}

void check_weights(const Graph& graph) {
  for (const Weight& weight : graph.weights) {
    if (weight.data == nullptr) continue;
    if (const auto index = find_nan(weight)) throw errors::nan_weight(weight.name, *index);
    graph.source->release(weight);
  }
}

}  // namespace parsimony
