#include "parsimony/graph/finite.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "parsimony/graph/errors.h"

namespace parsimony {
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
