#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "parsimony/base/ranges.h"
#include "parsimony/graph/operators/evaluate_impl.h"

namespace parsimony::evaluation {
namespace {

// Null where the operator has no such form; no value where the operands have no result.
using IntUnary = std::optional<int64_t> (*)(int64_t);
using FloatUnary = double (*)(double);

constexpr int64_t kLowest = std::numeric_limits<int64_t>::min();

std::optional<int64_t> same(int64_t a) { return a; }
std::optional<int64_t> negative(int64_t a) {
  return a == kLowest ? std::nullopt : std::optional(-a);
}
std::optional<int64_t> absolute(int64_t a) { return a < 0 ? negative(a) : a; }
std::optional<int64_t> sign(int64_t a) { return a > 0 ? 1 : a < 0 ? -1 : 0; }
std::optional<int64_t> negated(int64_t a) { return a == 0 ? 1 : 0; }
double float_sign(double a) { return a > 0 ? 1 : a < 0 ? -1 : a; }

std::optional<int64_t> add(int64_t a, int64_t b) {
  int64_t out = 0;
  return __builtin_add_overflow(a, b, &out) ? std::nullopt : std::optional(out);
}
std::optional<int64_t> subtract(int64_t a, int64_t b) {
  int64_t out = 0;
  return __builtin_sub_overflow(a, b, &out) ? std::nullopt : std::optional(out);
}
std::optional<int64_t> multiply(int64_t a, int64_t b) {
  int64_t out = 0;
  return __builtin_mul_overflow(a, b, &out) ? std::nullopt : std::optional(out);
}
/// Truncates toward zero, as ONNX demands.
std::optional<int64_t> divide(int64_t a, int64_t b) {
  if (b == 0) return std::nullopt;
  return b == -1 ? negative(a) : a / b;
}
/// Sign of the dividend: Mod with fmod = 1.
std::optional<int64_t> remainder(int64_t a, int64_t b) {
  if (b == 0) return std::nullopt;
  return b == -1 ? 0 : a % b;
}
/// Sign of the divisor.
std::optional<int64_t> modulo(int64_t a, int64_t b) {
  const std::optional<int64_t> rest = remainder(a, b);
  return rest && *rest != 0 && (*rest < 0) != (b < 0) ? *rest + b : rest;
}
std::optional<int64_t> power(int64_t base, int64_t exponent) {
  if (exponent < 0) return std::nullopt;
  if (base == 0 || base == 1) return exponent == 0 ? 1 : base;
  if (base == -1) return exponent % 2 == 0 ? 1 : -1;
  std::optional<int64_t> out = 1;
  for (int64_t i = 0; i < exponent && out; ++i) out = multiply(*out, base);  // at most 64 rounds
  return out;
}
std::optional<int64_t> minimum(int64_t a, int64_t b) { return std::min(a, b); }
std::optional<int64_t> maximum(int64_t a, int64_t b) { return std::max(a, b); }

std::optional<double> float_add(double a, double b) { return a + b; }
std::optional<double> float_subtract(double a, double b) { return a - b; }
std::optional<double> float_multiply(double a, double b) { return a * b; }
std::optional<double> float_divide(double a, double b) {
  return b == 0 ? std::nullopt : std::optional(a / b);
}
std::optional<double> float_remainder(double a, double b) {
  return b == 0 ? std::nullopt : std::optional(std::fmod(a, b));
}
std::optional<double> float_power(double a, double b) { return std::pow(a, b); }
std::optional<double> float_minimum(double a, double b) { return std::min(a, b); }
std::optional<double> float_maximum(double a, double b) { return std::max(a, b); }

struct UnaryOperator {
  std::string_view op;
  IntUnary ints;
  FloatUnary floats;
};
constexpr std::array kUnary = {
    UnaryOperator{"Abs", absolute, std::fabs},
    UnaryOperator{"Ceil", same, std::ceil},
    UnaryOperator{"Cos", nullptr, std::cos},
    UnaryOperator{"Exp", nullptr, std::exp},
    UnaryOperator{"Floor", same, std::floor},
    UnaryOperator{"Log", nullptr, std::log},
    UnaryOperator{"Neg", negative, [](double a) { return -a; }},
    UnaryOperator{"Not", negated, nullptr},
    UnaryOperator{"Reciprocal", nullptr, [](double a) { return 1 / a; }},
    UnaryOperator{"Round", same, std::nearbyint},  // halves to even, as ONNX demands
    UnaryOperator{"Sign", sign, float_sign},
    UnaryOperator{"Sin", nullptr, std::sin},
    UnaryOperator{"Sqrt", nullptr, std::sqrt},
    UnaryOperator{"Tanh", nullptr, std::tanh},
};

constexpr std::array kBinary = {
    BinaryOperator{"Add", add, float_add},
    BinaryOperator{"Div", divide, float_divide},
    BinaryOperator{"Max", maximum, float_maximum},
    BinaryOperator{"Min", minimum, float_minimum},
    BinaryOperator{"Mod", modulo, nullptr},
    BinaryOperator{"Mod, fmod", remainder, float_remainder},
    BinaryOperator{"Mul", multiply, float_multiply},
    BinaryOperator{"Pow", power, float_power},
    BinaryOperator{"Sub", subtract, float_subtract},
    BinaryOperator{"Sum", add, float_add},
};

struct Comparison {
  std::string_view op;
  bool (*ints)(int64_t, int64_t);
  bool (*floats)(double, double);
};
constexpr std::array kComparisons = {
    Comparison{"And", [](int64_t a, int64_t b) { return a != 0 && b != 0; }, nullptr},
    Comparison{"Equal", [](int64_t a, int64_t b) { return a == b; },
               [](double a, double b) { return a == b; }},
    Comparison{"Greater", [](int64_t a, int64_t b) { return a > b; },
               [](double a, double b) { return a > b; }},
    Comparison{"GreaterOrEqual", [](int64_t a, int64_t b) { return a >= b; },
               [](double a, double b) { return a >= b; }},
    Comparison{"Less", [](int64_t a, int64_t b) { return a < b; },
               [](double a, double b) { return a < b; }},
    Comparison{"LessOrEqual", [](int64_t a, int64_t b) { return a <= b; },
               [](double a, double b) { return a <= b; }},
    Comparison{"Or", [](int64_t a, int64_t b) { return a != 0 || b != 0; }, nullptr},
    Comparison{"Xor", [](int64_t a, int64_t b) { return (a != 0) != (b != 0); }, nullptr},
};

template <typename Table>
const typename Table::value_type& entry_of(const Table& table, std::string_view op) {
  return *std::ranges::find(table, op, &Table::value_type::op);
}

/// TorchScript mixes numbers and integers; ONNX operands agree.
DType promoted(const HostTensor& a, const HostTensor& b) {
  if (a.floating() != b.floating()) return a.floating() ? a.dtype : b.dtype;
  return a.dtype == DType::kBool ? b.dtype : a.dtype;
}

/// Two operands side by side, element by element of the result.
struct Pairs {
  Shape dims;
  std::vector<int64_t> a;
  std::vector<int64_t> b;
};

std::optional<Pairs> pairs_of(const NodeView& view, const HostTensor& a, const HostTensor& b) {
  // Before opset 7 an attribute aligned the second operand.
  if (view.find("broadcast") != nullptr && view.find("axis") != nullptr) return std::nullopt;
  Pairs pairs;
  pairs.dims = broadcast(view, a.dims, b.dims);
  if (!fits(pairs.dims)) return std::nullopt;
  pairs.a = positions(pairs.dims, broadcast_strides(a.dims, pairs.dims));
  pairs.b = positions(pairs.dims, broadcast_strides(b.dims, pairs.dims));
  return pairs;
}

std::optional<HostTensor> combine(const NodeView& view, const BinaryOperator& entry,
                                  const HostTensor& a, const HostTensor& b) {
  const std::optional<Pairs> pairs = pairs_of(view, a, b);
  if (!pairs) return std::nullopt;
  HostTensor out = zeros(promoted(a, b), pairs->dims);
  if (out.floating() ? entry.floats == nullptr : entry.ints == nullptr) return std::nullopt;
  for (size_t i = 0; i < pairs->a.size(); ++i) {
    if (out.floating()) {
      const auto value = entry.floats(a.number(pairs->a[i]), b.number(pairs->b[i]));
      if (!value) return std::nullopt;
      out.floats[i] = rounded(out.dtype, *value);
      continue;
    }
    auto value = entry.ints(a.ints[pairs->a[i]], b.ints[pairs->b[i]]);
    if (value) value = checked(out.dtype, *value);
    if (!value) return std::nullopt;
    out.ints[i] = *value;
  }
  return out;
}

/// An integer base raised to a floating exponent stays an integer.
std::optional<HostTensor> back_to_integers(const HostTensor& tensor, DType dtype) {
  HostTensor out = zeros(dtype, tensor.dims);
  for (size_t i = 0; i < tensor.floats.size(); ++i) {
    const double value = std::trunc(tensor.floats[i]);
    if (!(std::fabs(value) < 0x1p53)) return std::nullopt;
    const auto fitting = checked(dtype, static_cast<int64_t>(value));
    if (!fitting) return std::nullopt;
    out.ints[i] = *fitting;
  }
  return out;
}

}  // namespace

const BinaryOperator& binary_operator(std::string_view op) { return entry_of(kBinary, op); }

Result unary(const NodeView& view) {
  const UnaryOperator& entry = entry_of(kUnary, view.node().op);
  HostTensor out = *view.constant(0);
  if (out.floating() ? entry.floats == nullptr : entry.ints == nullptr) return std::nullopt;
  for (double& element : out.floats) {
    if (element == 0 && entry.op == "Reciprocal") return std::nullopt;
    element = rounded(out.dtype, entry.floats(element));
  }
  for (int64_t& element : out.ints) {
    auto value = entry.ints(element);
    if (value) value = checked(out.dtype, *value);
    if (!value) return std::nullopt;
    element = *value;
  }
  return single(std::move(out));
}

Result binary(const NodeView& view) {
  const HostTensor& a = *view.constant(0);
  const HostTensor& b = *view.constant(1);
  const bool like_c = view.node().op == "Mod" && view.attr("fmod", 0) != 0;
  const BinaryOperator& entry = binary_operator(like_c ? "Mod, fmod" : view.node().op);
  std::optional<HostTensor> out = combine(view, entry, a, b);
  if (out && entry.op == "Pow" && out->floating() && !a.floating()) {
    out = back_to_integers(*out, a.dtype);
  }
  return out ? single(std::move(*out)) : std::nullopt;
}

Result variadic(const NodeView& view) {
  const bool mean = view.node().op == "Mean";
  const BinaryOperator& entry = binary_operator(mean ? "Sum" : view.node().op);
  HostTensor out = *view.constant(0);
  for (int i = 1; i < view.inputs(); ++i) {
    if (!view.has_input(i)) return std::nullopt;
    std::optional<HostTensor> next = combine(view, entry, out, *view.constant(i));
    if (!next) return std::nullopt;
    out = std::move(*next);
  }
  if (mean && !out.floating()) return std::nullopt;
  for (double& element : out.floats) {
    if (mean) element = rounded(out.dtype, element / view.inputs());
  }
  return single(std::move(out));
}

Result compare(const NodeView& view) {
  const Comparison& entry = entry_of(kComparisons, view.node().op);
  const HostTensor& a = *view.constant(0);
  const HostTensor& b = *view.constant(1);
  const std::optional<Pairs> pairs = pairs_of(view, a, b);
  if (!pairs) return std::nullopt;
  HostTensor out = zeros(DType::kBool, pairs->dims);
  const bool floating = a.floating() || b.floating();
  if (floating && entry.floats == nullptr) return std::nullopt;
  for (size_t i = 0; i < pairs->a.size(); ++i) {
    const bool holds = floating ? entry.floats(a.number(pairs->a[i]), b.number(pairs->b[i]))
                                : entry.ints(a.ints[pairs->a[i]], b.ints[pairs->b[i]]);
    out.ints[i] = holds ? 1 : 0;
  }
  return single(std::move(out));
}

Result where(const NodeView& view) {
  const HostTensor& condition = *view.constant(0);
  const HostTensor& yes = *view.constant(1);
  const HostTensor& no = *view.constant(2);
  if (condition.floating() || yes.floating() != no.floating()) return std::nullopt;
  const Shape dims = broadcast(view, broadcast(view, condition.dims, yes.dims), no.dims);
  if (!fits(dims)) return std::nullopt;
  const auto tests = positions(dims, broadcast_strides(condition.dims, dims));
  const auto from_yes = positions(dims, broadcast_strides(yes.dims, dims));
  const auto from_no = positions(dims, broadcast_strides(no.dims, dims));
  HostTensor out = zeros(yes.dtype, dims);
  for (size_t i = 0; i < tests.size(); ++i) {
    const bool chosen = condition.ints[tests[i]] != 0;
    put(out, static_cast<int64_t>(i), chosen ? yes : no, chosen ? from_yes[i] : from_no[i]);
  }
  return single(std::move(out));
}

namespace {

/// Folds element i of `from` into element to[i] of `out`; false on overflow.
template <typename Number>
bool fold(std::optional<Number> (*combine)(Number, Number), const std::vector<Number>& from,
          const std::vector<int64_t>& to, std::vector<Number>& out) {
  std::vector<bool> met(out.size(), false);
  for (size_t i = 0; i < from.size(); ++i) {
    const size_t at = to[i];
    const auto next = met[at] ? combine(out[at], from[i]) : std::optional(from[i]);
    if (!next) return false;
    out[at] = *next;
    met[at] = true;
  }
  return true;
}

/// The result's dimensions with the reduced ones as 1.
Shape reduced_dims(const NodeView& view, const Shape& from) {
  const std::vector<size_t> axes = axes_of(view, 1, from.size());
  if (axes.empty()) return Shape(from.size(), 1);
  Shape dims = from;
  for (const size_t axis : axes) dims[axis] = 1;
  return dims;
}

Shape squeezed(const NodeView& view, const Shape& from) {
  const std::vector<size_t> axes = axes_of(view, 1, from.size());
  Shape dims;
  for (size_t d = 0; d < from.size(); ++d) {
    const bool reduced = axes.empty() || contains(axes, d);
    if (!reduced) dims.push_back(from[d]);
  }
  return dims;
}

/// Rounds to the element type and, for a mean, divides; false if an integer does not fit.
bool settle(bool mean, int64_t per_element, HostTensor& out) {
  for (double& element : out.floats) {
    if (mean) element /= static_cast<double>(per_element);
    element = rounded(out.dtype, element);
  }
  for (int64_t& element : out.ints) {
    if (mean) element /= per_element;
    if (!checked(out.dtype, element)) return false;
  }
  return true;
}

}  // namespace

Result reduce(const NodeView& view) {
  const HostTensor& data = *view.constant(0);
  const bool no_axes = axes_of(view, 1, data.dims.size()).empty();
  if (no_axes && view.attr("noop_with_empty_axes", 0) != 0) return single(data);
  if (data.count() == 0) return std::nullopt;

  const std::string_view what = std::string_view(view.node().op).substr(6);  // after "Reduce"
  const bool mean = what == "Mean";
  const BinaryOperator& combine = binary_operator(mean ? "Sum" : what == "Prod" ? "Mul" : what);
  const Shape dims = reduced_dims(view, data.dims);
  const auto to = positions(data.dims, broadcast_strides(dims, data.dims));
  HostTensor out = zeros(data.dtype, dims);
  const bool done = out.floating() ? fold(combine.floats, data.floats, to, out.floats)
                                   : fold(combine.ints, data.ints, to, out.ints);
  if (!done || !settle(mean, data.count() / out.count(), out)) return std::nullopt;
  if (view.attr("keepdims", 1) == 0) out.dims = squeezed(view, data.dims);
  return single(std::move(out));
}

Result cum_sum(const NodeView& view) {
  const HostTensor& data = *view.constant(0);
  const HostTensor& along = *view.constant(1);
  if (along.floating() || along.count() != 1) return std::nullopt;
  const size_t axis = axis_of(view, along.ints[0], data.dims.size());
  const int64_t size = data.dims[axis];
  const int64_t stride = dense_strides(data.dims)[axis];
  const bool reverse = view.attr("reverse", 0) != 0;
  const bool exclusive = view.attr("exclusive", 0) != 0;
  HostTensor out = zeros(data.dtype, data.dims);

  Shape starts = data.dims;
  starts[axis] = std::min<int64_t>(size, 1);
  for (const int64_t start : positions(starts, dense_strides(data.dims))) {
    int64_t sum = 0;
    double total = 0;
    for (int64_t i = 0; i < size; ++i) {
      const size_t at = start + (reverse ? size - 1 - i : i) * stride;
      if (out.floating()) {
        const double before = total;
        total = rounded(data.dtype, total + data.floats[at]);
        out.floats[at] = exclusive ? before : total;
        continue;
      }
      const int64_t before = sum;
      const auto next = binary_operator("Add").ints(sum, data.ints[at]);
      if (!next || !checked(data.dtype, *next)) return std::nullopt;
      sum = *next;
      out.ints[at] = exclusive ? before : sum;
    }
  }
  return single(std::move(out));
}

}  // namespace parsimony::evaluation
