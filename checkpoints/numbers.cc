#include <algorithm>
#include <array>
#include <cmath>

#include "parsimony/checkpoints/numbers_impl.h"

namespace parsimony::checkpoints {
namespace {

constexpr double kFoldTolerance = 1e-4;
// torch's own first, then those of timm, TensorFlow, EfficientNet, Darknet.
constexpr auto kEpsilons = std::to_array<double>({1e-5, 1e-3, 1e-4, 1e-6, 1e-8, 1e-2, 0});

}  // namespace

Numbers numbers_of(const Weight& weight) {
  const HostTensor host = to_host(weight);
  return host.floating() ? host.floats : Numbers(host.ints.begin(), host.ints.end());
}

bool all_equal(const Numbers& values) {
  return std::ranges::all_of(values, [&](double value) { return value == values.front(); });
}

bool equal_transposed(const Numbers& a, const Numbers& b, const Shape& dims) {
  for (int64_t i = 0; i < dims[0]; ++i) {
    for (int64_t k = 0; k < dims[1]; ++k) {
      if (a[i * dims[1] + k] != b[k * dims[0] + i]) return false;
    }
  }
  return true;
}

Numbers factors_between(const Numbers& folded, const Numbers& plain, const Shape& dims, int out) {
  int64_t inner = 1;
  for (size_t i = out + 1; i < dims.size(); ++i) inner *= dims[i];
  const int64_t count = dims[out];
  Numbers products(count);
  Numbers squares(count);
  Numbers largest(count);
  const auto channel = [&](size_t i) { return static_cast<int64_t>(i) / inner % count; };
  for (size_t i = 0; i < folded.size(); ++i) {
    const int64_t c = channel(i);
    products[c] += folded[i] * plain[i];
    squares[c] += plain[i] * plain[i];
    largest[c] = std::max(largest[c], std::abs(folded[i]));
  }
  for (int64_t c = 0; c < count; ++c) products[c] = squares[c] > 0 ? products[c] / squares[c] : 0;
  for (size_t i = 0; i < folded.size(); ++i) {
    const int64_t c = channel(i);
    if (std::abs(folded[i] - products[c] * plain[i]) > kFoldTolerance * largest[c]) return {};
  }
  return products;
}

std::optional<double> epsilon_of(const Numbers& factors, const Numbers& gain,
                                 const Numbers& variance) {
  const auto fits = [&](double epsilon) {
    for (size_t c = 0; c < factors.size(); ++c) {
      if (factors[c] == 0) continue;  // a channel that is zero in the weight has none of its own
      const double factor = gain[c] / std::sqrt(variance[c] + epsilon);
      if (!(std::abs(factor - factors[c]) <= kFoldTolerance * std::abs(factor))) return false;
    }
    return true;
  };
  const auto found = std::ranges::find_if(kEpsilons, fits);
  return found == kEpsilons.end() ? std::nullopt : std::optional(*found);
}

}  // namespace parsimony::checkpoints
