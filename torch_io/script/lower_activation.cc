// Activations that take parameters, or that are several operators in ONNX.
#include "parsimony/base/ranges.h"
#include "parsimony/torch_io/script/lowerings_impl.h"
#include "parsimony/torch_io/script/origins_impl.h"

namespace parsimony::torch_io::script {
namespace {

void clip(Call& call, Operand low, Operand high) {
  call.give_node("Clip", {call.tensor(0), low, high});
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
  const size_t high = only_max ? 1 : 2;
  clip(call, has_low ? call.tensor_or_number(1) : Operand{},
       call.none(high) ? Operand{} : call.tensor_or_number(high));
}

void lower_hardtanh(Call& call) {
  clip(call, number(call, call.number(1, -1)), number(call, call.number(2, 1)));
}

void lower_relu6(Call& call) { clip(call, number(call, 0), number(call, 6)); }

void lower_leaky_relu(Call& call) {
  call.give_node("LeakyRelu", {call.tensor(0)}, {{"alpha", call.number(1, 0.01)}});
}

/// rrelu(x, lower, upper, training): in evaluation mode the slope between the two
void lower_rrelu(Call& call) {
  call.require(!call.flag(3));
  const double slope = (call.number(1, 1.0 / 8) + call.number(2, 1.0 / 3)) / 2;
  call.give_node("LeakyRelu", {call.tensor(0)}, {{"alpha", slope}});
}

/// elu(x, alpha, scale, input_scale), celu(x, alpha)
void lower_elu(Call& call) {
  call.require(call.number(2, 1) == 1 && call.number(3, 1) == 1);
  call.give_node(call.onnx, {call.tensor(0)}, {{"alpha", call.number(1, 1)}});
}

/// gelu(x, approximate)
void lower_gelu(Call& call) {
  const std::string how = call.none(1) ? "none" : call.text(1);
  call.give_node("Gelu", {call.tensor(0)}, {{"approximate", how}});
}

void lower_silu(Call& call) { call.give(gated(call, call.tensor(0), call.tensor(0).value)); }

void lower_hard_sigmoid(Call& call) {
  call.give_node("HardSigmoid", {call.tensor(0)}, {{"alpha", 1.0 / 6}, {"beta", 0.5}});
}

/// softplus(x, beta, threshold): the threshold only spares the exponential where it makes no
/// difference.
void lower_softplus(Call& call) {
  call.require(call.number(1, 1) == 1);
  call.give_node("Softplus", {call.tensor(0)});
}

void lower_log_sigmoid(Call& call) {
  call.give_node("Log", {{call.out.emit("Sigmoid", {call.tensor(0)})}});
}

/// prelu(x, w[c]): the slopes stand along dimension 1.
void lower_prelu(Call& call) {
  const Operand x = call.tensor(0);
  const Operand w = call.tensor(1);
  const size_t rank = call.rank(x.value);
  const Shape slopes = call.shape(w.value);
  if (slopes == Shape{1} || rank < 3) return call.give_node("PRelu", {x, w});
  const ValueId axes = call.out.integers(successive(1, rank - 1));
  const ValueId column = call.out.emit("Unsqueeze", {{w.value}, {axes}});
  call.out.alias(column, w.value);
  call.give_node("PRelu", {x, {column}});
}

/// glu(x, dim): the first half, gated by the second
void lower_glu(Call& call) {
  const Operand x = call.tensor(0);
  const Shape shape = call.shape(x.value);
  const int64_t axis = call.axis(call.integer(1, -1), shape.size());
  const int64_t half = shape[axis] / 2;
  const ValueId sizes = call.out.integers({half, half});
  call.out.origins().constants[sizes].equal_parts = true;
  const auto halves = call.out.emit_many("Split", {x, {sizes}}, 2, {{"axis", axis}});
  call.give(gated(call, {halves[0]}, halves[1]));
}

/// softshrink(x, lambda): towards zero by lambda; hardshrink(x, lambda): zero up to lambda
void lower_shrink(Call& call) {
  const double lambda = call.number(1, 0.5);
  call.give_node("Shrink", {call.tensor(0)},
                 {{"lambd", lambda}, {"bias", call.op == "softshrink" ? lambda : 0.0}});
}

/// threshold(x, most, number): x where it is more than that, else the number
void lower_threshold(Call& call) {
  const Operand x = call.tensor(0);
  const ValueId more = call.out.emit("Greater", {x, number(call, call.number(1))});
  call.give_node("Where", {{more}, x, number(call, call.number(2))});
}

/// softmax(x, dim, dtype), log_softmax(x, dim, dtype)
void lower_softmax(Call& call) {
  call.give_node(call.onnx, {call.tensor(0)}, {{"axis", call.integer(1)}});
}

}  // namespace parsimony::torch_io::script
