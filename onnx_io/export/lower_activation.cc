// Elementwise operators that opset 17 lacks or takes otherwise.
#include <cmath>

#include "parsimony/onnx_io/export/lowering_impl.h"

namespace parsimony::onnx_io {
namespace {

/// x³ + …: tanh(sqrt(2/π) (x + 0.044715 x³))
ValueId tanh_of_cubic(Lowering& s, ValueId x) {
  const auto number = [&](double value) { return s.out.number(value, s.dtype()); };
  const ValueId square = s.out.emit("Mul", {x, x});
  const ValueId cube = s.out.emit("Mul", {square, x});
  const ValueId scaled = s.out.emit("Mul", {cube, number(0.044715)});
  const ValueId sum = s.out.emit("Add", {x, scaled});
  return s.out.emit("Tanh", {s.out.emit("Mul", {sum, number(std::sqrt(2 / std::acos(-1.0)))})});
}

}  // namespace

/// x (1 + erf(x / sqrt 2)) / 2, or by tanh. @source Gelu of opset 20
void lower_gelu(Lowering& s) {
  const ValueId x = s.in(0);
  const auto number = [&](double value) { return s.out.number(value, s.dtype()); };
  const ValueId curve = s.view.attr("approximate", "none") == "tanh"
                            ? tanh_of_cubic(s, x)
                            : s.out.emit("Erf", {s.out.emit("Div", {x, number(std::sqrt(2.0))})});
  const ValueId gate = s.out.emit("Add", {curve, number(1)});
  s.give(s.out.emit("Mul", {s.out.emit("Mul", {x, gate}), number(0.5)}));
}

/// x tanh(softplus(x)). @source Mish of opset 18
void lower_mish(Lowering& s) {
  const ValueId gate = s.out.emit("Tanh", {s.out.emit("Softplus", {s.in(0)})});
  s.give(s.out.emit("Mul", {s.in(0), gate}));
}

/// ONNX's Mod of floats has the dividend's sign; torch's remainder has the divisor's.
void lower_mod(Lowering& s) {
  const bool fmod = s.view.attr("fmod", 0) != 0;
  if (fmod || !is_floating(s.dtype())) {
    s.give(s.out.emit("Mod", {s.in(0), s.in(1)}, {{"fmod", int64_t{fmod ? 1 : 0}}}));
    return;
  }
  const ValueId whole = s.out.emit("Floor", {s.out.emit("Div", {s.in(0), s.in(1)})});
  s.give(s.out.emit("Sub", {s.in(0), s.out.emit("Mul", {whole, s.in(1)})}));
}

/// And, Or, Xor, Not: of booleans only; torch takes the bits of integers.
void lower_logical(Lowering& s) {
  for (const ValueId input : s.inputs) {
    s.require(s.out.dtype(input) == DType::kBool, "ONNX's is of booleans only");
  }
  s.give(s.out.emit(s.node().op, s.inputs));
}

}  // namespace parsimony::onnx_io
