// Reductions and cumulative operators.
#include <algorithm>
#include <functional>
#include <limits>

#include "parsimony/base/ranges.h"
#include "parsimony/torch_io/executor/operators_impl.h"

namespace parsimony::executor {
namespace {

constexpr double kHighest = 1e30;

at::Tensor over(const Call& call, const at::Tensor& x,
                const std::function<at::Tensor(const at::Tensor&, const Ints&)>& reduce) {
  const Ints axes = reduced_axes(call);
  if (axes.empty()) return x;
  at::Tensor y = reduce(x, axes);
  if (call.integer("keepdims", 1) != 0) return y;
  Ints dims;
  for (int64_t i = 0; i < y.dim(); ++i) {
    if (std::find(axes.begin(), axes.end(), i) == axes.end()) dims.push_back(y.size(i));
  }
  return y.reshape(dims);
}

at::Tensor sum_over(const at::Tensor& x, const Ints& axes) {
  return at::sum(x, axes, true, x.scalar_type());
}

at::Tensor over_nothing(const at::Tensor& x, const Ints& axes, bool highest) {
  Ints dims = x.sizes().vec();
  for (const int64_t axis : axes) dims[axis] = 1;
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  return at::full(dims, highest ? -kInfinity : kInfinity, x.options());
}

/// An extremum over nothing is the type's own limit.
Tensors extremum(const Call& call, bool highest) {
  const at::Tensor& x = call.in(0);
  const at::ScalarType type = x.scalar_type();
  const bool narrow = type != at::kFloat && type != at::kDouble;
  at::Tensor filled = x;
  if (call.presence(0).defined()) {
    if (narrow) filled = x.to(at::kDouble);
    filled = filled.masked_fill(call.presence(0).logical_not(), highest ? -kHighest : kHighest);
  } else if (type == at::kBool) {
    filled = x.to(at::kByte);
  }
  const at::Tensor y = over(call, filled, [&](const at::Tensor& v, const Ints& axes) {
    if (v.numel() == 0 && v.is_floating_point()) return over_nothing(v, axes, highest);
    return highest ? at::amax(v, axes, true) : at::amin(v, axes, true);
  });
  return {y.to(type)};
}

Tensors arg(const Call& call, bool highest) {
  const at::Tensor& p = call.presence(0);
  at::Tensor x = call.in(0);
  if (p.defined()) x = x.masked_fill(p.logical_not(), highest ? -kHighest : kHighest);
  const int64_t axis = wrapped(call.integer("axis", 0), x.dim());
  const bool last = call.integer("select_last_index", 0) != 0;
  if (last) x = x.flip({axis});
  at::Tensor y = highest ? at::argmax(x, axis, true) : at::argmin(x, axis, true);
  if (last) y = x.size(axis) - 1 - y;
  return {call.integer("keepdims", 1) != 0 ? y : y.squeeze(axis)};
}

}  // namespace

Ints reduced_axes(const Call& call) {
  const int64_t rank = call.in(0).dim();
  const Ints axes = wrapped(call.ints(1, "axes"), rank);
  const bool all = axes.empty() && call.integer("noop_with_empty_axes", 0) == 0;
  return all ? successive(0, rank) : axes;
}

Tensors reduce_sum(const Call& call) { return {over(call, call.in(0), sum_over)}; }
Tensors reduce_l1(const Call& call) { return {over(call, at::abs(call.in(0)), sum_over)}; }
Tensors reduce_sum_square(const Call& call) {
  return {over(call, call.in(0) * call.in(0), sum_over)};
}

Tensors reduce_l2(const Call& call) {
  const at::Tensor& x = call.in(0);
  return {at::sqrt(reduce_sum_square(call)[0]).to(x.scalar_type())};
}

Tensors reduce_log_sum(const Call& call) { return {at::log(reduce_sum(call)[0])}; }

Tensors reduce_log_sum_exp(const Call& call) {
  const at::Tensor x = call.filled(0, -kHighest);
  return {over(call, x,
               [](const at::Tensor& v, const Ints& axes) { return at::logsumexp(v, axes, true); })};
}

Tensors reduce_mean(const Call& call) {
  const at::Tensor& x = call.in(0);
  const at::Tensor& p = call.presence(0);
  const bool floating = x.is_floating_point();
  if (!p.defined()) {
    const at::Tensor wide = floating ? x : x.to(at::kDouble);
    const auto mean = [](const at::Tensor& v, const Ints& axes) { return at::mean(v, axes, true); };
    return {over(call, wide, mean).to(x.scalar_type())};
  }
  const at::Tensor count = over(call, p.to(at::kFloat), sum_over);
  return {(over(call, x, sum_over) / at::clamp_min(count, 1)).to(x.scalar_type())};
}

Tensors reduce_prod(const Call& call) {
  const at::Tensor x = call.filled(0, 1);
  return {over(call, x, [](at::Tensor v, const Ints& axes) {
    for (const int64_t axis : axes) v = at::prod(v, axis, true, v.scalar_type());
    return v;
  })};
}

Tensors reduce_max(const Call& call) { return extremum(call, true); }
Tensors reduce_min(const Call& call) { return extremum(call, false); }
Tensors arg_max(const Call& call) { return arg(call, true); }
Tensors arg_min(const Call& call) { return arg(call, false); }

namespace {

/// @param start  what is there before the first element
template <typename Accumulate>
Tensors accumulated(const Call& call, double start, const Accumulate& accumulate) {
  const at::Tensor& x = call.in(0);
  const int64_t axis = wrapped(call.ints_in(1).at(0), x.dim());
  const bool reverse = call.integer("reverse", 0) != 0;
  at::Tensor y = reverse ? x.flip({axis}) : x;
  if (call.integer("exclusive", 0) != 0) {
    const at::Tensor first = at::full_like(y.narrow(axis, 0, 1), start);
    y = at::cat({first, y.narrow(axis, 0, y.size(axis) - 1)}, axis);
  }
  y = accumulate(y, axis, x.scalar_type());
  return {reverse ? y.flip({axis}) : y};
}

}  // namespace

Tensors cum_sum(const Call& call) {
  return accumulated(call, 0, [](const at::Tensor& x, int64_t axis, at::ScalarType type) {
    return at::cumsum(x, axis, type);
  });
}

Tensors cum_prod(const Call& call) {
  return accumulated(call, 1, [](const at::Tensor& x, int64_t axis, at::ScalarType type) {
    return at::cumprod(x, axis, type);
  });
}

/// Orders equal elements by their index. Absent ones come last.
Tensors top_k(const Call& call) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const bool largest = call.integer("largest", 1) != 0;
  const at::Tensor x = call.filled(0, largest ? -kInfinity : kInfinity);
  const int64_t axis = wrapped(call.integer("axis", -1), x.dim());
  const int64_t k = call.has_in(1) ? call.ints_in(1).at(0) : call.integer("k", 1);
  const auto [values, places] = at::sort(x, true, axis, largest);
  return {values.narrow(axis, 0, k), places.narrow(axis, 0, k)};
}

namespace {

/// Loss of log-probabilities [n, classes, …] with targets [n, …].
at::Tensor likelihood_loss(const Call& call, const at::Tensor& scores) {
  const std::string reduction = call.text("reduction", "mean");
  const int64_t kind = reduction == "none"  ? at::Reduction::None
                       : reduction == "sum" ? at::Reduction::Sum
                                            : at::Reduction::Mean;
  constexpr int64_t kNoIndex = -100;  // PyTorch's default
  return at::nll_loss_nd(scores, call.in(1).to(at::kLong), call.in(2), kind,
                         call.integer("ignore_index", kNoIndex));
}

}  // namespace

Tensors negative_log_likelihood_loss(const Call& call) {
  return {likelihood_loss(call, call.in(0))};
}

Tensors softmax_cross_entropy_loss(const Call& call) {
  const at::Tensor scores = at::log_softmax(call.in(0), 1);
  return {likelihood_loss(call, scores), scores};
}

Tensors det(const Call& call) { return {at::linalg_det(call.in(0))}; }

/// Presence per matrix: present if anything in the matrix is.
Tensors of_matrices(const Operator& /*op*/, const Call& call, const Tensors& /*outputs*/) {
  return {call.presence(0).any(-1).any(-1)};
}

}  // namespace parsimony::executor
