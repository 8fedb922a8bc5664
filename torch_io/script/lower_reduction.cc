// Sums, means and extremes over some dimensions.
#include "parsimony/base/ranges.h"
#include "parsimony/torch_io/script/lowerings_impl.h"

namespace parsimony::torch_io::script {
namespace {

ValueId reduced(Call& call, const std::string& op, ValueId x, const std::vector<int64_t>& axes,
                bool keep) {
  std::vector<Operand> inputs{{x}};
  if (!axes.empty()) inputs.push_back({call.out.integers(axes)});
  return call.out.emit(op, inputs, {{"keepdims", int64_t{keep ? 1 : 0}}});
}

std::vector<int64_t> axes_in(Call& call, size_t i) {
  return call.none(i) ? std::vector<int64_t>{} : call.integers(i);
}

/// n / (n - correction) of the n elements that are reduced to one.
ValueId corrected(Call& call, ValueId x, std::vector<int64_t> axes, int64_t correction) {
  if (axes.empty()) axes = successive(0, call.rank(x));
  ValueId n = call.out.integer(1);
  for (const int64_t axis : axes) {
    n = call.out.emit("Mul", {{n}, {call.out.size_of_dim(x, axis)}});
  }
  const ValueId less = call.out.emit("Sub", {{n}, {call.out.integer(correction)}});
  return call.out.emit("Div", {{call.out.real(n)}, {call.out.real(less)}});
}

}  // namespace

/// mean(x, dims, keepdim, dtype); mean(x, dtype)
void lower_reduce(Call& call) {
  // Without dimensions the only other argument is the type.
  const bool whole = call.size() <= 2 && !call.op.starts_with('a');
  call.give(reduced(call, call.onnx, call.tensor(0).value,
                    whole ? std::vector<int64_t>{} : axes_in(call, 1), !whole && call.flag(2)));
}

/// max(x), max(x, dim, keepdim) -> (values, indices), max(x, y)
void lower_max_min(Call& call) {
  const Operand x = call.tensor(0);
  if (call.size() == 2) {
    call.give_node(call.onnx, {x, call.tensor(1)});
    return;
  }
  const std::string op = "Reduce" + call.onnx;
  if (call.size() < 2) return call.give(reduced(call, op, x.value, {}, false));
  call.give(reduced(call, op, x.value, {call.integer(1)}, call.flag(2)));
  const ValueId indices =
      call.out.emit("Arg" + call.onnx, {x},
                    {{"axis", call.integer(1)}, {"keepdims", int64_t{call.flag(2) ? 1 : 0}}});
  call.give(1, Binding::tensor(indices));
}

/// any(x), any(x, dim or dims, keepdim); all likewise
void lower_any(Call& call) {
  const auto as = [&](ValueId value, DType type) {
    const ValueId result = call.out.emit("Cast", {{value}}, {{"to", int64_t{onnx_number(type)}}});
    call.out.graph().value(result).dtype = type;
    return result;
  };
  const ValueId truth = as(call.tensor(0).value, DType::kBool);
  const ValueId extreme =
      reduced(call, call.onnx, as(truth, DType::kInt32), axes_in(call, 1), call.flag(2));
  call.give(as(extreme, DType::kBool));
}

/// argmax(x, dim, keepdim)
void lower_arg(Call& call) {
  call.give_node(call.onnx, {call.tensor(0)},
                 {{"axis", call.integer(1)}, {"keepdims", call.integer(2, 0)}});
}

/// norm(x, p, dims, keepdim), linalg_vector_norm(x, p, dims, keepdim)
void lower_norm(Call& call) {
  const double p = call.number(1, 2);
  call.require(p == 1 || p == 2);
  call.give(reduced(call, p == 1 ? "ReduceL1" : "ReduceL2", call.tensor(0).value, axes_in(call, 2),
                    call.flag(3)));
}

/// frobenius_norm(x, dims, keepdim)
void lower_frobenius_norm(Call& call) {
  call.give(reduced(call, "ReduceL2", call.tensor(0).value, axes_in(call, 1), call.flag(2)));
}

/// linalg_norm(x, p, dims, keepdim, dtype) of vectors
void lower_linalg_norm(Call& call) {
  const std::vector<int64_t> axes = axes_in(call, 2);
  call.require(axes.size() == 1 && (call.none(1) || call.number(1) == 2));
  call.give(reduced(call, "ReduceL2", call.tensor(0).value, axes, call.flag(3)));
}

/// var(x, unbiased), var(x, dims, unbiased or correction, keepdim): the mean of squared deviations,
/// by n / (n - correction); std, and var_mean and std_mean with the mean behind it
void lower_var(Call& call) {
  const bool whole = call.size() == 2;
  call.require(whole || call.size() == 4);
  const ValueId x = call.tensor(0).value;
  const std::vector<int64_t> axes = whole ? std::vector<int64_t>{} : axes_in(call, 1);
  const bool keep = !whole && call.flag(3);
  const ValueId mean = reduced(call, "ReduceMean", x, axes, true);
  const ValueId centred = call.out.emit("Sub", {{x}, {mean}});
  const ValueId squared = call.out.emit("Mul", {{centred}, {centred}});
  ValueId result = reduced(call, "ReduceMean", squared, axes, keep);
  if (const int64_t correction = call.integer(whole ? 1 : 2, 1); correction != 0) {
    result = call.out.emit("Mul", {{result}, {corrected(call, x, axes, correction)}});
  }
  if (call.op.starts_with("std")) result = call.out.emit("Sqrt", {{result}});
  call.give(result);
  if (!call.op.ends_with("_mean")) return;
  call.give(1, Binding::tensor(keep ? mean : reduced(call, "ReduceMean", x, axes, false)));
}

}  // namespace parsimony::torch_io::script
