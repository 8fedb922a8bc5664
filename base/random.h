// Counter-based random numbers: a function of their key alone, the same on every platform.
#pragma once

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

namespace parsimony {

/// A stream of random numbers. Equal keys give equal streams, independent of other streams. Does
/// not use the standard library's distributions, which differ between implementations.
///
///     Random random(seed, epoch, sample);
///     const bool flip = random.below(2) == 1;
///
/// @source Steele, Lea, Flood: Fast splittable pseudorandom number generators, OOPSLA 2014
/// (SplitMix64)
class Random {
 public:
  explicit constexpr Random(uint64_t seed, uint64_t stream = 0, uint64_t element = 0)
      : state_(mix(mix(mix(seed) + stream) + element)) {}

  constexpr uint64_t next() { return mix(state_ += kStep); }

  /// In [0, count). For small counts: the bias is at most count / 2^32.
  constexpr uint32_t below(uint32_t count) {
    return static_cast<uint32_t>(((next() >> 32) * count) >> 32);
  }

  /// In [low, high], both included.
  constexpr int32_t between(int32_t low, int32_t high) {
    return low + static_cast<int32_t>(below(static_cast<uint32_t>(high - low + 1)));
  }

 private:
  static constexpr uint64_t kStep = 0x9E3779B97F4A7C15;

  static constexpr uint64_t mix(uint64_t x) {
    x += kStep;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
    return x ^ (x >> 31);
  }

  uint64_t state_;
};

/// The numbers 0 … count - 1 in random order. `count` is below 2^32.
inline std::vector<int64_t> permutation(int64_t count, Random random) {
  std::vector<int64_t> order(count);
  std::iota(order.begin(), order.end(), int64_t{0});
  for (size_t i = order.size(); i > 1; --i) {
    std::swap(order[i - 1], order[random.below(static_cast<uint32_t>(i))]);
  }
  return order;
}

}  // namespace parsimony
