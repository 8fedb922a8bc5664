#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <span>

#include "parsimony/checkpoints/numbers_impl.h"
#include "parsimony/graph/elements.h"

namespace parsimony::checkpoints {
namespace {

constexpr double kFoldTolerance = 1e-4;
// torch's own first, then those of timm, TensorFlow, EfficientNet, Darknet.
constexpr auto kEpsilons = std::to_array<double>({1e-5, 1e-3, 1e-4, 1e-6, 1e-8, 1e-2, 0});

constexpr int64_t kBlock = 4096;

/// Elements `begin` to before `begin + count`, as numbers.
void read_block(const Weight& weight, int64_t begin, int64_t count, std::span<double> into) {
  const std::byte* at = weight.data + begin * weight.stride;
  if (weight.dtype == DType::kFloat32 && weight.stride == sizeof(float)) {
    for (int64_t i = 0; i < count; ++i, at += sizeof(float)) {
      float number = 0;
      std::memcpy(&number, at, sizeof(number));
      into[i] = number;
    }
    return;
  }
  const ReadNumber read = reader_of(weight.dtype);
  for (int64_t i = 0; i < count; ++i, at += weight.stride) into[i] = read(at);
}

}  // namespace

Numbers numbers_of(const Weight& weight) {
  const HostTensor host = to_host(weight);
  return host.floating() ? host.floats : Numbers(host.ints.begin(), host.ints.end());
}

Weight as_weight(const StoredTensor& tensor, const StoredValues& values) {
  return {"", tensor.type->dtype, tensor.dims, values.bytes().data(), tensor.type->bytes};
}

bool all_equal(const Numbers& values) {
  return std::ranges::all_of(values, [&](double value) { return value == values.front(); });
}

std::vector<std::byte> bytes_of(const Numbers& numbers, DType dtype) {
  const int64_t size = size_of(dtype);
  std::vector<std::byte> bytes(numbers.size() * size);
  for (size_t i = 0; i < numbers.size(); ++i) write_number(numbers[i], dtype, &bytes[i * size]);
  return bytes;
}

Numbers transposed(const Numbers& numbers, const Shape& dims) {
  Numbers result(numbers.size());
  for (int64_t i = 0; i < dims[0]; ++i) {
    for (int64_t k = 0; k < dims[1]; ++k) result[k * dims[0] + i] = numbers[i * dims[1] + k];
  }
  return result;
}

bool equal_transposed(const Weight& a, const Weight& b) {
  const int64_t rows = a.dims[0];
  const int64_t columns = a.dims[1];
  std::vector<double> row(columns);
  std::vector<double> column(columns);
  for (int64_t i = 0; i < rows; ++i) {
    Weight down = b;
    down.data += i * b.stride;
    down.stride *= rows;
    read_block(a, i * columns, columns, row);
    read_block(down, 0, columns, column);
    if (row != column) return false;
  }
  return true;
}

bool equal_numbers(const Weight& a, const Weight& b) {
  std::vector<double> left(kBlock);
  std::vector<double> right(kBlock);
  const int64_t count = a.count();
  for (int64_t begin = 0; begin < count; begin += kBlock) {
    const int64_t size = std::min(kBlock, count - begin);
    read_block(a, begin, size, left);
    read_block(b, begin, size, right);
    if (!std::equal(left.begin(), left.begin() + size, right.begin())) return false;
  }
  return true;
}

Numbers factors_between(const Weight& folded, const Weight& plain, int out) {
  int64_t inner = 1;
  for (size_t i = out + 1; i < plain.dims.size(); ++i) inner *= plain.dims[i];
  const int64_t channels = plain.dims[out];
  const int64_t per_channel = channels == 0 ? 0 : plain.count() / channels;
  std::vector<double> ours(per_channel);
  std::vector<double> theirs(per_channel);
  Numbers factors(channels);
  for (int64_t c = 0; c < channels; ++c) {
    for (int64_t at = 0; at < per_channel; at += inner) {
      const int64_t begin = at * channels + c * inner;
      read_block(folded, begin, inner, std::span(ours).subspan(at));
      read_block(plain, begin, inner, std::span(theirs).subspan(at));
    }
    double product = 0;
    double square = 0;
    double largest = 0;
    for (int64_t i = 0; i < per_channel; ++i) {
      product += ours[i] * theirs[i];
      square += theirs[i] * theirs[i];
      largest = std::max(largest, std::abs(ours[i]));
    }
    const double factor = square > 0 ? product / square : 0;
    double error = 0;
    for (int64_t i = 0; i < per_channel; ++i) {
      error = std::max(error, std::abs(ours[i] - factor * theirs[i]));
    }
    if (!(error <= kFoldTolerance * largest)) return {};
    factors[c] = factor;
  }
  return factors;
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
