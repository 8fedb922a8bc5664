// Normalisations, where an omitted affine operand becomes ones or zeros that no module owns. Sums,
// means and extrema over some dimensions.
#include <limits>

#include "parsimony/base/ranges.h"
#include "parsimony/programs/call.h"
#include "parsimony/programs/sources.h"

namespace parsimony::programs {
namespace {

int64_t channels(Call& call) {
  const Shape x = call.shape(call.tensor(0).value);
  call.require(x.size() >= 2);
  return x[1];
}

/// Per channel, mean and variance of all that the batch has of it.
void normalise_by_batch(Call& call, double epsilon) {
  const Operand x = call.tensor(0);
  const size_t rank = call.rank(x.value);
  call.require(rank >= 2);
  std::vector<int64_t> axes = successive(0, rank);
  axes.erase(axes.begin() + 1);
  const auto mean = [&](ValueId value) {
    return call.out.emit("ReduceMean", {{value}, {call.out.integers(axes)}},
                         {{"keepdims", int64_t{1}}});
  };
  const ValueId centred = call.out.emit("Sub", {x, {mean(x.value)}});
  const ValueId variance = mean(call.out.emit("Mul", {{centred}, {centred}}));
  const ValueId shifted = call.out.emit("Add", {{variance}, {call.out.number(epsilon)}});
  ValueId y = call.out.emit("Div", {{centred}, {call.out.emit("Sqrt", {{shifted}})}});
  const auto along_channels = [&](size_t i) {
    std::vector<int64_t> behind = successive(1, rank - 1);
    if (behind.empty()) return call.tensor(i);
    return Operand{call.out.emit("Unsqueeze", {call.tensor(i), {call.out.integers(behind)}})};
  };
  if (!call.none(1)) y = call.out.emit("Mul", {{y}, along_channels(1)});
  if (!call.none(2)) y = call.out.emit("Add", {{y}, along_channels(2)});
  call.set_result(y);
}

void batch_norm(Call& call, double epsilon) {
  if (call.none(3) && call.none(4)) return normalise_by_batch(call, epsilon);
  call.require(!call.none(3) && !call.none(4));
  const int64_t c = call.shape(call.tensor(3).value).at(0);
  call.set_node("BatchNormalization",
                {call.tensor(0), or_synthetic(call, 1, c, 1), or_synthetic(call, 2, c, 0),
                 call.tensor(3), call.tensor(4)},
                {{"epsilon", epsilon}});
}

}  // namespace

Operand or_synthetic(Call& call, size_t i, int64_t size, double number) {
  return call.none(i) ? Operand{call.out.synthetic({size}, number)} : call.tensor(i);
}

/// batch_norm(x, w, b, mean, var, training, momentum, eps, cudnn), _native_batch_norm_legit(x, w,
/// b, training, momentum, eps)
void lower_batch_norm(Call& call) {
  if (call.size() == 6) return normalise_by_batch(call, call.number(5));
  batch_norm(call, call.number(7));
}

/// _native_batch_norm_legit_no_training(x, w, b, mean, var, momentum, eps)
void lower_batch_norm_of_statistics(Call& call) { batch_norm(call, call.number(6)); }

namespace {

/// Returns the sizes in argument 1, which repeat the last ones of x.
Shape repeated_sizes(Call& call) {
  const Operand x = call.tensor(0);
  const std::vector<Element> sizes = call.elements(1);
  const size_t rank = call.rank(x.value);
  call.require(!sizes.empty() && sizes.size() <= rank);
  const Shape shape = call.shape(x.value);
  Shape normalized(shape.end() - static_cast<std::ptrdiff_t>(sizes.size()), shape.end());
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i].run_time != kNone) continue;
    const int dim = static_cast<int>(rank - sizes.size() + i);
    call.out.sources().size_literals.push_back({sizes[i].location, x.value, dim});
  }
  return normalized;
}

}  // namespace

/// layer_norm(x, normalized_shape, w, b, eps, cudnn)
void lower_layer_norm(Call& call) {
  const Shape sizes = repeated_sizes(call);
  const Operand w = call.none(2) ? Operand{call.out.synthetic(sizes, 1)} : call.tensor(2);
  call.set_node("LayerNormalization", {call.tensor(0), w, call.optional_tensor(3)},
                {{"axis", -static_cast<int64_t>(sizes.size())}, {"epsilon", call.number(4)}});
}

/// rms_norm(x, normalized_shape, w, eps): x divided by its root mean square
void lower_rms_norm(Call& call) {
  const Shape sizes = repeated_sizes(call);
  const Operand x = call.tensor(0);
  const auto last = static_cast<int64_t>(sizes.size());
  std::vector<int64_t> axes;
  for (int64_t i = -last; i < 0; ++i) axes.push_back(i);
  const ValueId square = call.out.emit("Mul", {x, x});
  const ValueId mean = call.out.emit("ReduceMean", {{square}, {call.out.integers(axes)}},
                                     {{"keepdims", int64_t{1}}});
  const double epsilon = call.number(3, std::numeric_limits<float>::epsilon());
  const ValueId shifted = call.out.emit("Add", {{mean}, {call.out.number(epsilon)}});
  const ValueId root = call.out.emit("Sqrt", {{shifted}});
  const ValueId y = call.out.emit("Div", {x, {root}});
  call.set_result(call.none(2) ? y : call.out.emit("Mul", {{y}, call.tensor(2)}));
}

/// group_norm(x, groups, w, b, eps, cudnn)
void lower_group_norm(Call& call) {
  const int64_t c = channels(call);
  Attributes attributes{{"epsilon", call.number(4)}};
  attributes.with("num_groups", call.integer(1), call.location(1));
  call.set_node("GroupNormalization",
                {call.tensor(0), or_synthetic(call, 2, c, 1), or_synthetic(call, 3, c, 0)},
                std::move(attributes));
}

/// native_group_norm(x, w, b, batch, channels, area, groups, eps)
void lower_native_group_norm(Call& call) {
  const int64_t c = channels(call);
  call.out.sources().size_literals.push_back({call.location(4), call.tensor(0).value, 1});
  Attributes attributes{{"epsilon", call.number(7)}};
  attributes.with("num_groups", call.integer(6), call.location(6));
  call.set_node("GroupNormalization",
                {call.tensor(0), or_synthetic(call, 1, c, 1), or_synthetic(call, 2, c, 0)},
                std::move(attributes));
}

/// _weight_norm(v, g, dim): v divided by its norm over all other dimensions, times g
void lower_weight_norm(Call& call) {
  const Operand v = call.tensor(0);
  const size_t rank = call.rank(v.value);
  const int64_t kept = call.axis(call.integer(2), rank);
  std::vector<int64_t> axes;
  for (size_t d = 0; d < rank; ++d) {
    if (static_cast<int64_t>(d) != kept) axes.push_back(static_cast<int64_t>(d));
  }
  const ValueId norm =
      call.out.emit("ReduceL2", {v, {call.out.integers(axes)}}, {{"keepdims", int64_t{1}}});
  const ValueId factor = call.out.emit("Div", {call.tensor(1), {norm}});
  call.set_node("Mul", {v, {factor}});
}

/// instance_norm(x, w, b, mean, var, use_input_stats, momentum, eps, cudnn)
void lower_instance_norm(Call& call) {
  if (!call.flag(5)) return batch_norm(call, call.number(7));
  const int64_t c = channels(call);
  call.set_node("InstanceNormalization",
                {call.tensor(0), or_synthetic(call, 1, c, 1), or_synthetic(call, 2, c, 0)},
                {{"epsilon", call.number(7)}});
}

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

/// Returns n / (n - correction), where n elements are reduced to one.
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
  call.set_result(reduced(call, call.onnx, call.tensor(0).value,
                          whole ? std::vector<int64_t>{} : axes_in(call, 1),
                          !whole && call.flag(2)));
}

/// max(x), max(x, dim, keepdim) -> (values, indices), max(x, y)
void lower_max_min(Call& call) {
  const Operand x = call.tensor(0);
  if (call.size() == 2) {
    call.set_node(call.onnx, {x, call.tensor(1)});
    return;
  }
  const std::string op = "Reduce" + call.onnx;
  if (call.size() < 2) return call.set_result(reduced(call, op, x.value, {}, false));
  call.set_result(reduced(call, op, x.value, {call.integer(1)}, call.flag(2)));
  const ValueId indices =
      call.out.emit("Arg" + call.onnx, {x},
                    {{"axis", call.integer(1)}, {"keepdims", int64_t{call.flag(2) ? 1 : 0}}});
  call.set_result(1, Binding::tensor(indices));
}

/// any(x), any(x, dim or dims, keepdim); all likewise
void lower_any(Call& call) {
  const ValueId truth = call.out.cast(call.tensor(0).value, DType::kBool);
  const ValueId number = call.out.cast(truth, DType::kInt32);
  const ValueId extreme = reduced(call, call.onnx, number, axes_in(call, 1), call.flag(2));
  call.set_result(call.out.cast(extreme, DType::kBool));
}

/// argmax(x, dim, keepdim)
void lower_arg(Call& call) {
  call.set_node(call.onnx, {call.tensor(0)},
                {{"axis", call.integer(1)}, {"keepdims", call.integer(2, 0)}});
}

/// norm(x, p, dims, keepdim), linalg_vector_norm(x, p, dims, keepdim)
void lower_norm(Call& call) {
  const double p = call.number(1, 2);
  call.require(p == 1 || p == 2);
  call.set_result(reduced(call, p == 1 ? "ReduceL1" : "ReduceL2", call.tensor(0).value,
                          axes_in(call, 2), call.flag(3)));
}

/// frobenius_norm(x, dims, keepdim)
void lower_frobenius_norm(Call& call) {
  call.set_result(reduced(call, "ReduceL2", call.tensor(0).value, axes_in(call, 1), call.flag(2)));
}

/// linalg_norm(x, p, dims, keepdim, dtype) of vectors
void lower_linalg_norm(Call& call) {
  const std::vector<int64_t> axes = axes_in(call, 2);
  call.require(axes.size() == 1 && (call.none(1) || call.number(1) == 2));
  call.set_result(reduced(call, "ReduceL2", call.tensor(0).value, axes, call.flag(3)));
}

/// var(x, unbiased), var(x, dims, unbiased or correction, keepdim): the mean of squared deviations,
/// times n / (n - correction); std; var_mean and std_mean, followed by the mean
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
  call.set_result(result);
  if (!call.op.ends_with("_mean")) return;
  call.set_result(1, Binding::tensor(keep ? mean : reduced(call, "ReduceMean", x, axes, false)));
}

}  // namespace parsimony::programs
