// Complex numbers: real and imaginary part are along an additional last axis, which lowering
// functions do not see (`Call::shape`). Operators that only move or add elements are lowered as for
// real tensors; products and Fourier transforms are here.
#include <functional>

#include "parsimony/base/ranges.h"
#include "parsimony/programs/call.h"

namespace parsimony::programs {
namespace {

struct Parts {
  ValueId real = kNone;
  ValueId imaginary = kNone;  ///< kNone for a real tensor
};

ValueId combined(Call& call, const char* op, ValueId a, ValueId b) {
  return call.out.emit(op, {{a}, {b}});
}

ValueId part_at(Call& call, ValueId x, int64_t i) {
  return call.out.emit("Gather", {{x}, {call.out.integer(i)}}, {{"axis", int64_t{-1}}});
}

Parts parts_of(Call& call, ValueId x) {
  if (!call.out.is_complex(x)) return {x, kNone};
  return {part_at(call, x, 0), part_at(call, x, 1)};
}

ValueId with_last_axis(Call& call, ValueId x) {
  return call.out.emit("Unsqueeze", {{x}, {call.out.integers({-1})}});
}

void set_pair(Call& call, const Parts& parts) {
  call.set_complex(call.out.emit(
      "Concat", {{with_last_axis(call, parts.real)}, {with_last_axis(call, parts.imaginary)}},
      {{"axis", int64_t{-1}}}));
}

using Product = std::function<ValueId(ValueId, ValueId)>;

/// (a + bi)(c + di) = ac - bd + (ad + bc)i, where one may be real
void set_product(Call& call, ValueId x, ValueId y, const Product& product) {
  const Parts a = parts_of(call, x);
  const Parts b = parts_of(call, y);
  if (b.imaginary == kNone) {
    return set_pair(call, {product(a.real, b.real), product(a.imaginary, b.real)});
  }
  if (a.imaginary == kNone) {
    return set_pair(call, {product(a.real, b.real), product(a.real, b.imaginary)});
  }
  set_pair(call,
           {combined(call, "Sub", product(a.real, b.real), product(a.imaginary, b.imaginary)),
            combined(call, "Add", product(a.real, b.imaginary), product(a.imaginary, b.real))});
}

/// Rejects values that may be complex or real.
void require_known(Call& call, ValueId x) {
  call.require(call.out.is_complex(x) || is_floating(call.out.graph().value(x).dtype));
}

Operand factor(Call& call, size_t i) {
  const Operand x = call.tensor_or_number(i);
  require_known(call, x.value);
  return x;
}

}  // namespace

/// mul(x, y)
void lower_complex_mul(Call& call) {
  const Operand x = factor(call, 0);
  const Operand y = factor(call, 1);
  const auto product = [&](ValueId a, ValueId b) { return combined(call, "Mul", a, b); };
  set_product(call, x.value, y.value, product);
}

/// div(x, y) by a real y
void lower_complex_div(Call& call) {
  const Operand x = factor(call, 0);
  const Operand y = factor(call, 1);
  call.require(call.none(2) && !call.out.is_complex(y.value));
  const auto ratio = [&](ValueId a, ValueId b) { return combined(call, "Div", a, b); };
  set_product(call, x.value, y.value, ratio);
}

/// add(x, y, alpha), sub(x, y, alpha) of two complex tensors
void lower_complex_add(Call& call) {
  call.require(call.out.is_complex(call.tensor(0).value));
  call.require(call.out.is_complex(call.tensor(1).value));
  lower_add(call);
  call.set_complex(call.results[0].value);
}

/// matmul(x, y)
void lower_complex_matmul(Call& call) {
  const auto product = [&](ValueId a, ValueId b) { return combined(call, "MatMul", a, b); };
  set_product(call, factor(call, 0).value, factor(call, 1).value, product);
}

/// einsum(equation, [x, y])
void lower_complex_einsum(Call& call) {
  std::string equation = call.text(0);
  std::erase(equation, ' ');
  const std::vector<Operand> tensors = call.tensors(1);
  call.require(tensors.size() == 2);
  for (const Operand& tensor : tensors) require_known(call, tensor.value);
  set_product(call, tensors[0].value, tensors[1].value, [&](ValueId a, ValueId b) {
    return call.out.emit("Einsum", {{a}, {b}}, {{"equation", equation}});
  });
}

/// conj(x)
void lower_conj(Call& call) {
  const Parts x = parts_of(call, call.tensor(0).value);
  set_pair(call, {x.real, call.out.emit("Neg", {{x.imaginary}})});
}

/// abs(x)
void lower_complex_abs(Call& call) {
  const Parts x = parts_of(call, call.tensor(0).value);
  const ValueId squares = combined(call, "Add", combined(call, "Mul", x.real, x.real),
                                   combined(call, "Mul", x.imaginary, x.imaginary));
  call.set_node("Sqrt", {{squares}});
}

/// real(x), imag(x)
void lower_part_of_complex(Call& call) {
  const ValueId x = call.tensor(0).value;
  call.set_view(part_at(call, x, call.op == "imag" ? 1 : 0), x);
}

/// view_as_real(x): the pairs unchanged
void lower_view_as_real(Call& call) {
  const Operand x = call.tensor(0);
  call.set_view(call.out.emit("Identity", {x}), x.value);
}

/// view_as_complex(x[… 2])
void lower_view_as_complex(Call& call) {
  const Operand x = call.tensor(0);
  call.require(is_floating(call.out.graph().value(x.value).dtype));
  call.require(call.rank(x.value) > 0 && call.shape(x.value).back() == 2);
  const ValueId pairs = call.out.emit("Identity", {x});
  call.out.alias(pairs, x.value);
  call.set_complex(pairs);
}

/// complex(real, imaginary)
void lower_complex(Call& call) { set_pair(call, {call.tensor(0).value, call.tensor(1).value}); }

/// polar(length, angle)
void lower_polar(Call& call) {
  const ValueId length = call.tensor(0).value;
  const Operand angle = call.tensor(1);
  set_pair(call, {combined(call, "Mul", length, call.out.emit("Cos", {angle})),
                  combined(call, "Mul", length, call.out.emit("Sin", {angle}))});
}

namespace {

enum class Scale { kNone, kRoot, kWhole };  // by the number of elements along an axis

/// A transform along several axes, by one DFT after the other. If the elements are real, the last
/// one has only `half` of the frequencies.
struct Transform {
  std::vector<int64_t> axes = {};
  std::vector<Element> lengths = {};  ///< empty: the sizes of the axes
  bool inverse = false;
  bool half = false;
  Scale divide = Scale::kNone;
  Scale multiply = Scale::kNone;  ///< divisor that an inverse always has
};

ValueId real_number(Call& call, const Element& whole) {
  if (whole.run_time == kNone) return call.out.number(static_cast<double>(whole.fixed));
  return call.out.real(whole.run_time);
}

ValueId scaled_by(Call& call, ValueId y, const char* op, Scale scale, const Element& length) {
  if (scale == Scale::kNone) return y;
  ValueId number = real_number(call, length);
  if (scale == Scale::kRoot) number = call.out.emit("Sqrt", {{number}});
  return combined(call, op, y, number);
}

/// Returns the length of the transform: explicit, or that of the axis.
Element length_of(Call& call, const Transform& of, size_t i, ValueId x, bool half) {
  if (!of.lengths.empty()) return of.lengths[i];
  const ValueId size = call.out.size_of_dim(x, of.axes[i]);
  if (!half || !of.inverse) return {0, size, {}};
  const ValueId one = call.out.integer(1);
  return {0, combined(call, "Mul", combined(call, "Sub", size, one), call.out.integer(2)), {}};
}

/// Transforms real numbers […, 1] or complex ones […, 2].
ValueId along_axis(Call& call, const Transform& of, size_t i, ValueId x) {
  const bool half = of.half && i + 1 == of.axes.size();
  const Element length = length_of(call, of, i, x, half);
  const bool named = !of.lengths.empty() || (half && of.inverse);
  Operand operand{};
  if (named) {
    operand.value = length.run_time == kNone ? call.out.integer(length.fixed) : length.run_time;
  }
  const ValueId y = call.out.emit(
      "DFT", {{x}, operand, {call.out.integer(of.axes[i])}},
      {{"inverse", int64_t{of.inverse ? 1 : 0}}, {"onesided", int64_t{half ? 1 : 0}}});
  return scaled_by(call, scaled_by(call, y, "Div", of.divide, length), "Mul", of.multiply, length);
}

void transform(Call& call, const Transform& of) {
  ValueId x = call.tensor(0).value;
  require_known(call, x);
  call.require(!of.axes.empty() && (of.lengths.empty() || of.lengths.size() == of.axes.size()));
  if (!call.out.is_complex(x)) x = with_last_axis(call, x);
  const auto last = static_cast<int64_t>(of.axes.size()) - 1;
  // Forward, numbers are real before the last axis is transformed; backward, afterwards.
  for (int64_t i = 0; i <= last; ++i) {
    x = along_axis(call, of, of.half && !of.inverse ? last - i : i, x);
  }
  if (!of.half || !of.inverse) return call.set_complex(x);
  call.set_node("Squeeze", {{x}, {call.out.integers({-1})}});
}

std::vector<int64_t> axes_at(Call& call, size_t i) {
  const size_t rank = call.rank(call.tensor(0).value);
  std::vector<int64_t> axes = call.integers(i);
  for (int64_t& axis : axes) axis = call.axis(axis, rank);
  return axes;
}

}  // namespace

/// fft_fft(x, n, dim, norm), fft_rfft, …; fft_fft2(x, s, dim, norm), fft_fftn, …
void lower_fft(Call& call) {
  Transform of{.inverse = call.op.starts_with("fft_i"),
               .half = call.op.find("rfft") != std::string::npos};
  if (!call.none(1)) of.lengths = call.elements(1);
  const size_t rank = call.rank(call.tensor(0).value);
  const size_t count = of.lengths.empty() ? rank : of.lengths.size();
  call.require(count <= rank);
  of.axes = call.none(2) ? successive(static_cast<int64_t>(rank - count), rank) : axes_at(call, 2);
  const std::string norm = call.none(3) ? "backward" : call.text(3);
  if (norm == "ortho") (of.inverse ? of.multiply : of.divide) = Scale::kRoot;
  if (norm == "forward") (of.inverse ? of.multiply : of.divide) = Scale::kWhole;
  transform(call, of);
}

/// _fft_r2c(x, dim, norm, onesided), _fft_c2c(x, dim, norm, forward), _fft_c2r(x, dim, norm, n)
void lower_inner_fft(Call& call) {
  const bool forward = call.op == "_fft_r2c" || (call.op == "_fft_c2c" && call.flag(3));
  const bool half = call.op == "_fft_c2r" || (call.op == "_fft_r2c" && call.flag(3));
  Transform of{.axes = axes_at(call, 1), .inverse = !forward, .half = half};
  constexpr int64_t kByRoot = 1;
  constexpr int64_t kByWhole = 2;
  const int64_t norm = call.integer(2);
  call.require(norm >= 0 && norm <= kByWhole);
  if (forward) {
    of.divide = norm == kByRoot ? Scale::kRoot : norm == kByWhole ? Scale::kWhole : Scale::kNone;
  } else {
    of.multiply = norm == kByRoot ? Scale::kRoot : norm == kByWhole ? Scale::kNone : Scale::kWhole;
  }
  if (call.op == "_fft_c2r") {
    const ValueId x = call.tensor(0).value;
    for (size_t i = 0; i + 1 < of.axes.size(); ++i) {
      of.lengths.push_back({0, call.out.size_of_dim(x, of.axes[i]), {}});
    }
    of.lengths.push_back(call.elements(3).at(0));
  }
  transform(call, of);
}

}  // namespace parsimony::programs
