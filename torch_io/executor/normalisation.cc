// Normalisation. If elements are absent, statistics are over the present ones.
#include <ATen/core/grad_mode.h>

#include <algorithm>

#include "parsimony/base/ranges.h"
#include "parsimony/torch_io/executor/operators_impl.h"
#include "parsimony/torch_io/sync_batch_norm.h"

namespace parsimony::executor {
namespace {

struct Moments {
  at::Tensor mean;
  at::Tensor variance;  ///< biased
};

/// Computes moments over `axes`, which keep size 1. `present` may be undefined.
Moments moments_of(const at::Tensor& x, const at::Tensor& present, const Ints& axes) {
  if (!present.defined()) {
    const at::Tensor mean = at::mean(x, axes, true);
    return {mean, at::mean(at::square(x - mean), axes, true)};
  }
  const at::Tensor p = present.to(x.scalar_type());
  const at::Tensor count = at::clamp_min(at::sum(p, axes, true), 1);
  const at::Tensor mean = at::sum(x * p, axes, true) / count;
  return {mean, at::sum(at::square((x - mean) * p), axes, true) / count};
}

/// running = momentum running + (1 - momentum) current
void update(const at::Tensor& running, const at::Tensor& current, double momentum) {
  const at::NoGradGuard guard;
  running.detach().mul_(momentum).add_(current.detach().reshape(running.sizes()), 1 - momentum);
}

struct Normalised {
  at::Tensor y;
  Moments batch;  ///< if requested
};

bool is_per_element(const Call& call) {
  return call.opset() < 9 && call.integer("spatial", 1) == 0;
}

/// Uses one kernel forward and one backward, which halves the time of training.
bool libtorch_has_it(const Call& call) {
  const at::Tensor& x = call.in(0);
  return x.scalar_type() == at::kFloat && x.dim() >= 2 && x.numel() > 0 &&
         !call.presence(0).defined() && !is_per_element(call) &&
         std::all_of(call.inputs.begin() + 1, call.inputs.end(),
                     [](const at::Tensor& t) { return t.scalar_type() == at::kFloat; });
}

Normalised normalised_by_libtorch(const Call& call, bool of_batch) {
  const double epsilon = call.real("epsilon", 1e-5);
  if (!of_batch) {
    return {std::get<0>(at::native_batch_norm(call.in(0), call.in(1), call.in(2), call.in(3),
                                              call.in(4), /*training=*/false, 0, epsilon)),
            {}};
  }
  const auto [y, mean, inverse] =
      torch_io::batch_normalised(call.in(0), call.in(1), call.in(2), epsilon);
  return {y, {mean, inverse.square().reciprocal() - epsilon}};
}

Normalised normalised_by_parts(const Call& call, bool of_batch) {
  const at::Tensor& x = call.in(0);
  const bool per_element = is_per_element(call);
  Ints feature(x.dim(), 1);
  for (int64_t i = 1; i < (per_element ? x.dim() : std::min<int64_t>(2, x.dim())); ++i) {
    feature[i] = x.size(i);
  }
  const auto shaped = [&](size_t i) { return call.in(i).reshape(feature); };
  Moments used{shaped(3), shaped(4)};
  if (of_batch) {
    Ints axes{0};
    for (int64_t i = 2; i < x.dim() && !per_element; ++i) axes.push_back(i);
    used = moments_of(x, call.presence(0), axes);
  }
  const at::Tensor scale = shaped(1) * at::rsqrt(used.variance + call.real("epsilon", 1e-5));
  return {(x - used.mean) * scale + shaped(2), used};
}

/// The window covers only present channels.
at::Tensor local_response(const Call& call, const at::Tensor& x) {
  const int64_t size = call.integer("size", 1);
  const int64_t before = (size - 1) / 2;
  const int64_t channels = x.size(1);
  Ints pad(2 * (x.dim() - 1), 0);
  pad[pad.size() - 2] = before;
  pad[pad.size() - 1] = size - 1 - before;
  const at::Tensor squares = at::constant_pad_nd(at::square(x), pad, 0);
  at::Tensor sums = at::zeros_like(x);
  for (int64_t k = 0; k < size; ++k) sums = sums + squares.narrow(1, k, channels);
  const double alpha = call.real("alpha", 1e-4) / static_cast<double>(size);
  return x / at::pow(sums * alpha + call.real("bias", 1), call.real("beta", 0.75));
}

}  // namespace

at::Tensor mean_of(const at::Tensor& x, const at::Tensor& present, const Ints& axes) {
  if (!present.defined()) return at::mean(x, axes, true);
  const at::Tensor p = present.to(x.scalar_type());
  return at::sum(x * p, axes, true) / at::clamp_min(at::sum(p, axes, true), 1);
}

Tensors batch_normalization(const Call& call) {
  const double momentum = call.real("momentum", 0.9);
  const bool of_batch = call.training || call.integer("training_mode", 0) != 0;
  const Normalised result = libtorch_has_it(call) ? normalised_by_libtorch(call, of_batch)
                                                  : normalised_by_parts(call, of_batch);
  Tensors results{result.y};
  if (of_batch && call.outputs() > 1) {
    const auto mixed = [&](size_t i, const at::Tensor& current) {
      return call.in(i)*momentum + current.reshape(call.in(i).sizes()) * (1 - momentum);
    };
    results.push_back(mixed(3, result.batch.mean));
    results.push_back(mixed(4, result.batch.variance));
  }
  if (call.training) {
    update(call.in(3), result.batch.mean, momentum);
    update(call.in(4), result.batch.variance, momentum);
  }
  // Copies of the statistics that versions 7 to 13 may name.
  while (results.size() < call.outputs())
    results.push_back(call.in(results.size() % 2 == 1 ? 3 : 4));
  return results;
}

Tensors layer_normalization(const Call& call) {
  const at::Tensor& x = call.in(0);
  const Ints axes = successive(wrapped(call.integer("axis", -1), x.dim()), x.dim());
  const Moments moments = moments_of(x, call.presence(0), axes);
  const at::Tensor inverse = at::rsqrt(moments.variance + call.real("epsilon", 1e-5));
  at::Tensor y = (x - moments.mean) * inverse * call.in(1);
  if (call.has_in(2)) y = y + call.in(2);
  return {y, moments.mean, inverse};
}

Tensors group_normalization(const Call& call) {
  const at::Tensor& x = call.in(0);
  const int64_t groups = call.integer("num_groups", 1);
  const int64_t channels = x.size(1);
  const Ints shape{x.size(0), groups, x.numel() / std::max<int64_t>(1, x.size(0) * groups)};
  const at::Tensor& p = call.presence(0);
  const at::Tensor grouped = x.reshape(shape);
  const Moments moments = moments_of(grouped, p.defined() ? p.reshape(shape) : at::Tensor(), {2});
  const at::Tensor inverse = at::rsqrt(moments.variance + call.real("epsilon", 1e-5));
  const at::Tensor normal = ((grouped - moments.mean) * inverse).reshape(x.sizes());
  // Before version 21 there was one scale per group.
  const auto per_channel = [&](const at::Tensor& v) {
    return along(v.numel() == channels ? v : v.repeat_interleave(channels / groups), 1, x.dim());
  };
  return {normal * per_channel(call.in(1)) + per_channel(call.in(2))};
}

Tensors instance_normalization(const Call& call) {
  const at::Tensor& x = call.in(0);
  const Moments moments = moments_of(x, call.presence(0), successive(2, x.dim()));
  const at::Tensor inverse = at::rsqrt(moments.variance + call.real("epsilon", 1e-5));
  return {(x - moments.mean) * inverse * along(call.in(1), 1, x.dim()) +
          along(call.in(2), 1, x.dim())};
}

Tensors mean_variance_normalization(const Call& call) {
  const at::Tensor& x = call.in(0);
  const Ints axes = wrapped(call.integers("axes", {0, 2, 3}), x.dim());
  const Moments moments = moments_of(x, call.presence(0), axes);
  return {(x - moments.mean) / (at::sqrt(moments.variance) + 1e-9)};
}

Tensors lp_normalization(const Call& call) {
  const at::Tensor& x = call.in(0);
  const int64_t axis = call.integer("axis", -1);
  const at::Tensor norm = call.integer("p", 2) == 1 ? at::sum(at::abs(x), axis, true)
                                                    : at::sqrt(at::sum(at::square(x), axis, true));
  return {x / norm};
}

Tensors lrn(const Call& call) {
  const at::Tensor& x = call.in(0);
  const at::Tensor& p = call.presence(0);
  if (!p.defined()) return {local_response(call, x)};
  Ints others = successive(2, x.dim());
  others.push_back(0);
  const at::Tensor kept = at::amax(p, others).nonzero().flatten();
  return {at::zeros_like(x).index_copy(1, kept, local_response(call, x.index_select(1, kept)))};
}

}  // namespace parsimony::executor
