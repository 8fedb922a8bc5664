// Elementwise operators: scaled and rounded arithmetic, beyond the table's one-to-one rows.
// Activations with parameters, or composed of several ONNX operators.
#include <cmath>
#include <limits>

#include "parsimony/base/ranges.h"
#include "parsimony/programs/call.h"
#include "parsimony/programs/element_types.h"
#include "parsimony/programs/sources.h"

namespace parsimony::programs {
namespace {

bool is_whole(const Call& call, const Operand& operand) {
  return call.out.graph().value(operand.value).dtype == DType::kInt64;
}

/// Converts integers next to real numbers, as in size**-0.5.
std::vector<Operand> alike(Call& call, Operand a, Operand b) {
  const auto is_real = [&](const Operand& operand) {
    return is_floating(call.out.graph().value(operand.value).dtype);
  };
  if (is_whole(call, a) && is_real(b)) a.value = call.out.real(a.value);
  if (is_whole(call, b) && is_real(a)) b.value = call.out.real(b.value);
  return {a, b};
}

/// Returns the first argument, converted to real if it is an integer.
Operand real(Call& call) {
  Operand x = call.tensor(0);
  if (is_whole(call, x)) x.value = call.out.real(x.value);
  return x;
}

std::vector<Operand> both(Call& call) {
  return alike(call, call.tensor_or_number(0), call.tensor_or_number(1));
}

/// Returns `i` times the factor in argument `by`, which may be omitted.
Operand scaled(Call& call, size_t i, size_t by) {
  const Operand x = call.tensor_or_number(i);
  if (call.none(by)) return x;
  if (call.arg(by).fixed_number() && call.number(by) == 1) return x;
  return {call.out.emit("Mul", {x, call.tensor_or_number(by)})};
}

/// Returns the quotient, rounded according to `how`. Sizes are not negative, so both ways agree,
/// and ONNX rounds integers anyway.
void quotient(Call& call, const std::string& how) {
  Operand a = call.tensor_or_number(0);
  Operand b = call.tensor_or_number(1);
  const bool integers = is_whole(call, a) && is_whole(call, b);
  if (integers && how.empty()) {
    a = {call.out.real(a.value)};
    b = {call.out.real(b.value)};
  }
  call.require(how != "trunc" || integers);
  const ValueId ratio = call.out.emit("Div", alike(call, a, b));
  call.set_result(how == "floor" && !integers ? call.out.emit("Floor", {{ratio}}) : ratio);
}

}  // namespace

void lower_unary(Call& call) { call.set_node(call.onnx, {call.tensor(0)}); }

/// Functions that are real also for integers, as sqrt(size).
void lower_real(Call& call) { call.set_node(call.onnx, {real(call)}); }

void lower_binary(Call& call) {
  Attributes attributes;
  if (call.op == "fmod") attributes.with("fmod", int64_t{1});  // the sign of the dividend
  call.set_node(call.onnx, both(call), std::move(attributes));
}

/// add(a, b, alpha) = a + alpha b, sub(a, b, alpha) = a - alpha b
void lower_add(Call& call) {
  const Operand a = call.tensor_or_number(0);
  call.set_node(call.onnx, alike(call, a, scaled(call, 1, 2)));
}

/// rsub(a, b, alpha) = b - alpha a
void lower_rsub(Call& call) {
  const Operand a = scaled(call, 0, 2);
  call.set_node("Sub", alike(call, call.tensor_or_number(1), a));
}

/// div(a, b, rounding_mode)
void lower_div(Call& call) { quotient(call, call.none(2) ? "" : call.text(2)); }

void lower_floor_divide(Call& call) { quotient(call, "floor"); }

void lower_rsqrt(Call& call) {
  call.set_node("Reciprocal", {{call.out.emit("Sqrt", {real(call)})}});
}

void lower_square(Call& call) { call.set_node("Mul", {call.tensor(0), call.tensor(0)}); }

void lower_ne(Call& call) {
  const ValueId same = call.out.emit("Equal", {call.tensor_or_number(0), call.tensor_or_number(1)});
  call.set_node("Not", {{same}});
}

/// log2(x), log10(x): log(x) divided by the log of the base
void lower_log_of_base(Call& call) {
  const double base = call.op == "log2" ? 2 : 10;
  const ValueId natural = call.out.emit("Log", {real(call)});
  call.set_node("Mul", {{natural}, {call.out.number(1 / std::log(base))}});
}

void lower_log1p(Call& call) {
  const ValueId more = call.out.emit("Add", {real(call), {call.out.number(1)}});
  call.set_node("Log", {{more}});
}

void lower_expm1(Call& call) {
  call.set_node("Sub", {{call.out.emit("Exp", {real(call)})}, {call.out.number(1)}});
}

void lower_erfc(Call& call) {
  call.set_node("Sub", {{call.out.number(1)}, {call.out.emit("Erf", {real(call)})}});
}

/// trunc(x): rounds toward zero; frac(x): the remainder
void lower_trunc(Call& call) {
  const Operand x = call.tensor(0);
  const ValueId floor = call.out.emit("Floor", {{call.out.emit("Abs", {x})}});
  const ValueId whole = call.out.emit("Mul", {{floor}, {call.out.emit("Sign", {x})}});
  call.set_result(call.op == "trunc" || call.op == "fix" ? whole
                                                         : call.out.emit("Sub", {x, {whole}}));
}

/// lerp(a, b, weight) = a + weight (b - a)
void lower_lerp(Call& call) {
  const Operand a = call.tensor(0);
  const ValueId way = call.out.emit("Sub", {call.tensor(1), a});
  const ValueId part = call.out.emit("Mul", {{way}, call.tensor_or_number(2)});
  call.set_node("Add", {a, {part}});
}

namespace {

/// Argument `i` of two that are chosen from: a whole number beside whole numbers stays one.
Operand choice(Call& call, size_t i, size_t other) {
  if (!call.arg(i).is(BindingKind::kInt)) return call.tensor_or_number(i);
  if (call.arg(other).is(BindingKind::kInt)) return {call.out.integer(call.integer(i))};
  if (!call.arg(other).is(BindingKind::kTensor)) return call.tensor_or_number(i);
  const DType type = call.out.graph().value(call.tensor(other).value).dtype;
  const bool whole = type != DType::kUnknown && type != DType::kBool && !is_floating(type);
  if (!whole) return call.tensor_or_number(i);
  return {call.out.cast(call.out.integer(call.integer(i)), type)};
}

}  // namespace

/// where(condition, a, b)
void lower_where(Call& call) {
  if (call.none(1)) return lower_places(call);
  call.set_node("Where", {call.tensor(0), choice(call, 1, 2), choice(call, 2, 1)});
}

/// masked_fill(x, mask, number)
void lower_masked_fill(Call& call) {
  call.set_node("Where", {call.tensor(1), choice(call, 2, 0), call.tensor(0)});
}

/// nan_to_num(x, nan, posinf, neginf): by default infinities become the largest numbers of float32
void lower_nan_to_num(Call& call) {
  constexpr double kMost = std::numeric_limits<float>::max();
  ValueId x = call.tensor(0).value;
  call.require(is_floating(call.out.graph().value(x).dtype));
  const auto replace = [&](ValueId where, double number) {
    x = call.out.emit("Where", {{where}, {call.out.number(number)}, {x}});
  };
  replace(call.out.emit("IsNaN", {{x}}), call.number(1, 0));
  replace(call.out.emit("Equal", {{x}, {call.out.number(HUGE_VAL)}}), call.number(2, kMost));
  replace(call.out.emit("Equal", {{x}, {call.out.number(-HUGE_VAL)}}), call.number(3, -kMost));
  call.set_result(x);
}

/// logit(x, eps) = log(x / (1 - x)), where x is clamped to [eps, 1 - eps]
void lower_logit(Call& call) {
  Operand x = real(call);
  if (!call.none(1)) {
    const double least = call.number(1);
    x = {call.out.emit("Clip", {x, {call.out.number(least)}, {call.out.number(1 - least)}})};
  }
  const ValueId rest = call.out.emit("Sub", {{call.out.number(1)}, x});
  call.set_node("Log", {{call.out.emit("Div", {x, {rest}})}});
}

/// hypot(a, b) = sqrt(a a + b b)
void lower_hypot(Call& call) {
  const auto square = [&](size_t i) {
    return call.out.emit("Mul", {call.tensor(i), call.tensor(i)});
  };
  call.set_node("Sqrt", {{call.out.emit("Add", {{square(0)}, {square(1)}})}});
}

/// atan2(y, x): the angle of y / x, plus or minus π if x is negative
void lower_atan2(Call& call) {
  const auto where = [&](const char* op, const Operand& a, const Operand& yes, const Operand& no) {
    return call.out.emit("Where", {{call.out.emit(op, {a, {call.out.number(0)}})}, yes, no});
  };
  const Operand y = call.tensor(0);
  const Operand x = call.tensor(1);
  constexpr double kLeast = std::numeric_limits<float>::min();
  const ValueId divisor = where("Equal", x, {call.out.number(kLeast)}, x);
  const ValueId angle = call.out.emit("Atan", {{call.out.emit("Div", {y, {divisor}})}});
  const ValueId half = where("Less", y, {call.out.number(-M_PI)}, {call.out.number(M_PI)});
  const ValueId further = where("Less", x, {half}, {call.out.number(0)});
  call.set_node("Add", {{angle}, {further}});
}

/// xlogy(a, b) = a log b, which is 0 where a is
void lower_xlogy(Call& call) {
  const Operand a = call.tensor(0);
  const Operand b = call.tensor_or_number(1);
  const ValueId zero = call.out.emit("Equal", {a, {call.out.number(0)}});
  const ValueId product = call.out.emit("Mul", {a, {call.out.emit("Log", {b})}});
  call.set_node("Where", {{zero}, a, {product}});
}

/// addcmul(x, a, b, value) = x + value a b; addcdiv likewise
void lower_addcmul(Call& call) {
  ValueId term = call.out.emit(call.onnx, {call.tensor(1), call.tensor(2)});
  if (call.number(3, 1) != 1) term = call.out.emit("Mul", {{term}, call.tensor_or_number(3)});
  call.set_node("Add", {call.tensor(0), {term}});
}

/// tril(x, diagonal), triu(x, diagonal)
void lower_trilu(Call& call) {
  call.set_node("Trilu", {call.tensor(0), {call.out.integer(call.integer(1, 0))}},
                {{"upper", int64_t{call.op == "triu" ? 1 : 0}}});
}

/// cumsum(x, dim, dtype): of integers and truth values in 64 bits
void lower_cumsum(Call& call) {
  Operand x = call.tensor(0);
  const DType own = call.out.graph().value(x.value).dtype;
  const bool asked = call.size() > 2 && !call.none(2);
  const DType type = asked ? dtype_of_torch(call.integer(2)) : DType::kInt64;
  const bool widens = own != DType::kUnknown && own != DType::kInt64 && !is_floating(own);
  if (asked || widens) x.value = call.out.cast(x, type);
  call.set_node("CumSum", {x, {call.out.integer(call.integer(1))}});
}

/// histc(x, bins, min, max): how many elements lie in each of `bins` equal parts from min to max,
/// the last of which has both its ends
void lower_histc(Call& call) {
  const int64_t bins = call.integer(1, 100);
  const double low = call.number(2, 0);
  const double high = call.number(3, 0);
  call.require(bins > 0 && low < high);  // else they are those of the elements
  Builder& out = call.out;
  HostTensor places{.dtype = DType::kFloat32, .dims = {bins}, .ints = {}, .floats = {}};
  for (int64_t i = 0; i < bins; ++i) places.floats.push_back(static_cast<double>(i));
  const ValueId x =
      out.emit("Reshape", {{out.real(call.tensor(0).value)}, {out.integers({-1, 1})}});
  const ValueId above = out.emit("Sub", {{x}, {out.number(low)}});
  const ValueId share = out.emit("Div", {{above}, {out.number(high - low)}});
  const ValueId scaled = out.emit("Mul", {{share}, {out.number(static_cast<double>(bins))}});
  const ValueId last = out.number(static_cast<double>(bins - 1));
  const ValueId within = out.emit("Min", {{out.emit("Floor", {{scaled}})}, {last}});
  const ValueId inside = out.emit("LessOrEqual", {{x}, {out.number(high)}});
  const ValueId place = out.emit("Where", {{inside}, {within}, {out.number(-1)}});
  const ValueId lies = out.emit("Equal", {{place}, {out.constant(places)}});
  call.set_node("ReduceSum", {{out.real(lies)}, {out.integers({0})}}, {{"keepdims", int64_t{0}}});
}

namespace {

void clip(Call& call, Operand low, Operand high) {
  call.set_node("Clip", {call.tensor(0), low, high});
}

Operand number(Call& call, double value) { return {call.out.number(value)}; }

/// x sigmoid(x')
ValueId gated(Call& call, const Operand& x, ValueId gate) {
  return call.out.emit("Mul", {x, {call.out.emit("Sigmoid", {{gate}})}});
}

}  // namespace

/// clamp(x, min, max); clamp_min(x, min); clamp_max(x, max)
void lower_clamp(Call& call) {
  const bool only_max = call.op == "clamp_max";
  const bool has_low = !only_max && !call.none(1);
  const size_t at = only_max ? 1 : 2;
  const Operand low = has_low ? call.tensor_or_number(1) : Operand{};
  const Operand high = call.none(at) ? Operand{} : call.tensor_or_number(at);
  const auto is_number = [&](const Operand& bound) {
    return bound.value == kNone || call.rank(bound.value) == 0;
  };
  if (is_number(low) && is_number(high)) return clip(call, low, high);
  ValueId x = call.tensor(0).value;
  if (low.value != kNone) x = call.out.emit("Max", {{x}, low});
  if (high.value != kNone) x = call.out.emit("Min", {{x}, high});
  call.set_result(x);
}

void lower_hardtanh(Call& call) {
  clip(call, number(call, call.number(1, -1)), number(call, call.number(2, 1)));
}

void lower_relu6(Call& call) { clip(call, number(call, 0), number(call, 6)); }

void lower_leaky_relu(Call& call) {
  call.set_node("LeakyRelu", {call.tensor(0)}, {{"alpha", call.number(1, 0.01)}});
}

/// rrelu(x, lower, upper, training): in evaluation mode the slope between the two
void lower_rrelu(Call& call) {
  call.require(!call.flag(3));
  const double slope = (call.number(1, 1.0 / 8) + call.number(2, 1.0 / 3)) / 2;
  call.set_node("LeakyRelu", {call.tensor(0)}, {{"alpha", slope}});
}

/// elu(x, alpha, scale, input_scale), celu(x, alpha)
void lower_elu(Call& call) {
  call.require(call.number(2, 1) == 1 && call.number(3, 1) == 1);
  call.set_node(call.onnx, {call.tensor(0)}, {{"alpha", call.number(1, 1)}});
}

/// gelu(x, approximate)
void lower_gelu(Call& call) {
  const std::string how = call.none(1) ? "none" : call.text(1);
  call.set_node("Gelu", {call.tensor(0)}, {{"approximate", how}});
}

void lower_silu(Call& call) { call.set_result(gated(call, call.tensor(0), call.tensor(0).value)); }

void lower_hard_sigmoid(Call& call) {
  call.set_node("HardSigmoid", {call.tensor(0)}, {{"alpha", 1.0 / 6}, {"beta", 0.5}});
}

/// softplus(x, beta, threshold): the threshold only saves the exponential where it has no effect.
void lower_softplus(Call& call) {
  call.require(call.number(1, 1) == 1);
  call.set_node("Softplus", {call.tensor(0)});
}

void lower_log_sigmoid(Call& call) {
  call.set_node("Log", {{call.out.emit("Sigmoid", {call.tensor(0)})}});
}

/// prelu(x, w[c]): the slopes are along dimension 1.
void lower_prelu(Call& call) {
  const Operand x = call.tensor(0);
  const Operand w = call.tensor(1);
  const size_t rank = call.rank(x.value);
  const Shape slopes = call.shape(w.value);
  if (slopes == Shape{1} || rank < 3) return call.set_node("PRelu", {x, w});
  const ValueId axes = call.out.integers(successive(1, rank - 1));
  const ValueId column = call.out.emit("Unsqueeze", {{w.value}, {axes}});
  call.out.alias(column, w.value);
  call.set_node("PRelu", {x, {column}});
}

/// glu(x, dim): the first half, gated by the second
void lower_glu(Call& call) {
  const Operand x = call.tensor(0);
  const Shape shape = call.shape(x.value);
  const int64_t axis = call.axis(call.integer(1, -1), shape.size());
  const int64_t half = shape[axis] / 2;
  const ValueId sizes = call.out.integers({half, half});
  call.out.sources().constants[sizes].equal_parts = true;
  const auto halves = call.out.emit_many("Split", {x, {sizes}}, 2, {{"axis", axis}});
  call.set_result(gated(call, {halves[0]}, halves[1]));
}

/// softshrink(x, lambda): shrinks by lambda; hardshrink(x, lambda): zero up to lambda
void lower_shrink(Call& call) {
  const double lambda = call.number(1, 0.5);
  call.set_node("Shrink", {call.tensor(0)},
                {{"lambd", lambda}, {"bias", call.op == "softshrink" ? lambda : 0.0}});
}

/// threshold(x, most, number): x if it is greater, else the number
void lower_threshold(Call& call) {
  const Operand x = call.tensor(0);
  const ValueId more = call.out.emit("Greater", {x, number(call, call.number(1))});
  call.set_node("Where", {{more}, x, number(call, call.number(2))});
}

/// softmax(x, dim, dtype), log_softmax(x, dim, dtype)
void lower_softmax(Call& call) {
  call.set_node(call.onnx, {call.tensor(0)}, {{"axis", call.integer(1)}});
}

}  // namespace parsimony::programs
