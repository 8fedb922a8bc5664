#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <span>

#include "parsimony/checkpoints/composed_impl.h"
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

namespace {

/// The indices of each axis that stay.
using Kept = std::vector<std::vector<bool>>;

Kept kept_of(const Shape& dims, const std::vector<AxisKeep>* cut) {
  Kept kept;
  for (const int64_t size : dims) kept.emplace_back(size, true);
  if (cut == nullptr) return kept;
  for (const AxisKeep& axis : *cut) {
    kept[axis.axis].assign(axis.size, false);
    for (const int64_t index : axis.keep) kept[axis.axis][index] = true;
  }
  return kept;
}

/// Visits the elements of a row-major tensor: their position and their index.
template <typename Visit>
void for_each_index(const Shape& dims, const Visit& visit) {
  const int64_t count = element_count(dims);
  Shape index(dims.size(), 0);
  for (int64_t at = 0; at < count; ++at) {
    visit(at, index);
    for (size_t axis = dims.size(); axis-- > 0;) {
      if (++index[axis] < dims[axis]) break;
      index[axis] = 0;
    }
  }
}

bool is_kept(const Kept& kept, const Shape& index) {
  for (size_t axis = 0; axis < index.size(); ++axis) {
    if (!kept[axis][index[axis]]) return false;
  }
  return true;
}

/// The elements of a tensor that stay.
Numbers cut_numbers(const Numbers& numbers, const Shape& dims, const Kept& kept) {
  Numbers result;
  for_each_index(dims, [&](int64_t at, const Shape& index) {
    if (is_kept(kept, index)) result.push_back(numbers[at]);
  });
  return result;
}

/// The position in a magnitude, which is broadcast along the axes where its size is 1.
int64_t broadcast_position(const Shape& index, const Shape& magnitude) {
  if (magnitude.size() != index.size()) return 0;
  int64_t at = 0;
  for (size_t axis = 0; axis < index.size(); ++axis) {
    at = at * magnitude[axis] + (magnitude[axis] == 1 ? 0 : index[axis]);
  }
  return at;
}

/// Per element of the magnitude: the norm of the elements of `numbers` under it. Where the
/// magnitude has an axis itself, what `kept` says of it does not count.
Numbers norms(const Numbers& numbers, const Shape& dims, const Shape& magnitude, Kept kept) {
  for (size_t axis = 0; axis < dims.size() && magnitude.size() == dims.size(); ++axis) {
    if (magnitude[axis] != 1) kept[axis].assign(dims[axis], true);
  }
  Numbers result(element_count(magnitude), 0);
  for_each_index(dims, [&](int64_t at, const Shape& index) {
    if (is_kept(kept, index)) {
      result[broadcast_position(index, magnitude)] += numbers[at] * numbers[at];
    }
  });
  for (double& norm : result) norm = std::sqrt(norm);
  return result;
}

/// The position in the columns of the matrix whose rows are axis `rows`.
int64_t column_of(const Shape& index, const Shape& dims, int rows) {
  int64_t at = 0;
  for (size_t axis = 0; axis < index.size(); ++axis) {
    if (static_cast<int>(axis) != rows) at = at * dims[axis] + index[axis];
  }
  return at;
}

/// uᵀ·w·v over what stays.
double bilinear(const Numbers& u, const Numbers& w, const Numbers& v, const Shape& dims, int rows,
                const Kept& kept) {
  double sum = 0;
  for_each_index(dims, [&](int64_t at, const Shape& index) {
    if (is_kept(kept, index)) sum += u[index[rows]] * w[at] * v[column_of(index, dims, rows)];
  });
  return sum;
}

/// The largest |a - b| that is the rounding of a few operations on numbers of this size.
double rounding(DType dtype, double largest) {
  constexpr double kOperations = 16;
  const double epsilon = dtype == DType::kFloat64    ? std::numeric_limits<double>::epsilon()
                         : dtype == DType::kFloat16  ? 0x1p-10
                         : dtype == DType::kBFloat16 ? 0x1p-7
                                                     : std::numeric_limits<float>::epsilon();
  return kOperations * epsilon * largest;
}

}  // namespace

Numbers stored_numbers(const Checkpoint& checkpoint, TensorId tensor) {
  return numbers_of(as_weight(checkpoint.tensors()[tensor], checkpoint.values(tensor)));
}

std::optional<int> rows_of(const Shape& dims, int64_t left, int64_t right, int preferred) {
  const int64_t count = element_count(dims);
  std::vector<int> fitting;
  for (int axis = 0; axis < static_cast<int>(dims.size()); ++axis) {
    if (dims[axis] == left && left * right == count) fitting.push_back(axis);
  }
  if (fitting.empty()) return std::nullopt;
  return std::ranges::find(fitting, preferred) != fitting.end() ? preferred : fitting.front();
}

bool is_magnitude(const Shape& magnitude, const Shape& weight) {
  if (element_count(magnitude) == 1) return true;
  if (magnitude.size() != weight.size()) return false;
  for (size_t axis = 0; axis < weight.size(); ++axis) {
    if (magnitude[axis] != 1 && magnitude[axis] != weight[axis]) return false;
  }
  return true;
}

Composition composition_of(TensorId tensor, const Dependents& dependents,
                           const Checkpoint& checkpoint, int outputs) {
  Composition composition{tensor};
  const auto stored = [&](TensorId id) -> const StoredTensor& { return checkpoint.tensors()[id]; };
  const Shape& dims = stored(tensor).dims;
  for (const Dependent& dependent : dependents.of(dependents.weight_of(tensor))) {
    const TensorId id = dependent.tensor;
    if (stored(id).type->dtype == DType::kUnknown) continue;
    if (dependent.part == DependentPart::kMagnitude && is_magnitude(stored(id).dims, dims)) {
      composition.magnitude = id;
    } else if (dependent.part == DependentPart::kMask && stored(id).dims == dims) {
      composition.mask = id;
    } else if (dependent.part == DependentPart::kLeft && stored(id).dims.size() == 1) {
      composition.left = id;
    } else if (dependent.part == DependentPart::kRight && stored(id).dims.size() == 1) {
      composition.right = id;
    }
  }
  if (!composition.is_spectral()) return composition;
  const auto rows =
      rows_of(dims, stored(composition.left).count(), stored(composition.right).count(), outputs);
  if (rows) {
    composition.rows = *rows;
  } else {
    composition.left = composition.right = TensorId();
  }
  return composition;
}

Composition composition_of(const WeightMatch& match, const std::string& prefix,
                           const TensorNames& names, const Dependents& dependents,
                           const Checkpoint& checkpoint) {
  const MatchTarget& weight = match.targets.front();
  Composition composition =
      composition_of(names.find(prefix + weight.name), dependents, checkpoint);
  for (TensorId Composition::*part :
       {&Composition::magnitude, &Composition::left, &Composition::right, &Composition::mask}) {
    const TensorId id = composition.*part;
    const auto target = std::ranges::find_if(match.targets, [&](const MatchTarget& one) {
      return id != TensorId() && names.find(prefix + one.name) == id;
    });
    if (target == match.targets.end()) {
      composition.*part = TensorId();
    } else if (part == &Composition::left) {
      composition.rows = weight.axes[std::ranges::find(target->axes, 0) - target->axes.begin()];
    }
  }
  return composition;
}

Numbers composed(const Composition& composition, const Checkpoint& checkpoint) {
  const Shape& dims = checkpoint.tensors()[composition.weight].dims;
  Numbers result = stored_numbers(checkpoint, composition.weight);
  if (composition.mask != TensorId()) {
    const Numbers mask = stored_numbers(checkpoint, composition.mask);
    std::ranges::transform(result, mask, result.begin(), std::multiplies());
  }
  if (composition.magnitude != TensorId()) {
    const Numbers g = stored_numbers(checkpoint, composition.magnitude);
    const Shape& along = checkpoint.tensors()[composition.magnitude].dims;
    const Numbers norm = norms(result, dims, along, kept_of(dims, nullptr));
    for_each_index(dims, [&](int64_t at, const Shape& index) {
      const int64_t group = broadcast_position(index, along);
      result[at] *= g[group] / norm[group];
    });
  }
  if (composition.is_spectral()) {
    const Numbers u = stored_numbers(checkpoint, composition.left);
    const Numbers v = stored_numbers(checkpoint, composition.right);
    const double sigma = bilinear(u, result, v, dims, composition.rows, kept_of(dims, nullptr));
    for (double& number : result) number /= sigma;
  }
  return result;
}

bool nearly_equal(const Numbers& numbers, const Weight& weight) {
  const Numbers expected = numbers_of(weight);
  if (expected.size() != numbers.size()) return false;
  double largest = 0;
  double difference = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    largest = std::max(largest, std::abs(expected[i]));
    const double here = std::abs(expected[i] - numbers[i]);
    if (!(here <= difference)) difference = here;  // also where it is no number
  }
  return difference <= rounding(weight.dtype, largest);
}

std::optional<Rescaled> rescaled(const Composition& composition, const Checkpoint& checkpoint,
                                 const std::function<const std::vector<AxisKeep>*(TensorId)>& cut) {
  const Shape& dims = checkpoint.tensors()[composition.weight].dims;
  if (cut(composition.weight) == nullptr) return std::nullopt;
  if (composition.magnitude == TensorId() && !composition.is_spectral()) return std::nullopt;
  const Kept kept = kept_of(dims, cut(composition.weight));
  const Numbers weight = stored_numbers(checkpoint, composition.weight);
  if (composition.magnitude != TensorId()) {
    const Shape& along = checkpoint.tensors()[composition.magnitude].dims;
    Numbers g = stored_numbers(checkpoint, composition.magnitude);
    const Numbers before = norms(weight, dims, along, kept_of(dims, nullptr));
    const Numbers after = norms(weight, dims, along, kept);
    if (before == after) return std::nullopt;
    for (size_t i = 0; i < g.size(); ++i) {
      if (before[i] > 0) g[i] *= after[i] / before[i];
    }
    return Rescaled{composition.magnitude,
                    cut_numbers(g, along, kept_of(along, cut(composition.magnitude)))};
  }
  Numbers u = stored_numbers(checkpoint, composition.left);
  const Numbers v = stored_numbers(checkpoint, composition.right);
  const int rows = composition.rows;
  const double before = bilinear(u, weight, v, dims, rows, kept_of(dims, nullptr));
  const double after = bilinear(u, weight, v, dims, rows, kept);
  if (after == 0) return std::nullopt;
  for (double& number : u) number *= before / after;
  const Shape along = {static_cast<int64_t>(u.size())};
  return Rescaled{composition.left, cut_numbers(u, along, kept_of(along, cut(composition.left)))};
}

}  // namespace parsimony::checkpoints
