// Reads and writes by index, and tensors made from scratch.
#include <algorithm>
#include <cmath>

#include "parsimony/torch_io/executor/operators_impl.h"

namespace parsimony::executor {
namespace {

/// Returns operand 1 on the data's device: sizes are computed on the CPU.
at::Tensor indices_of(const Call& call) { return call.in(1).to(call.in(0).device()); }

/// Makes negative indices, which count from the end, non-negative.
at::Tensor non_negative(const at::Tensor& indices, int64_t size) {
  const at::Tensor wide = indices.to(at::kLong);
  return at::where(wide < 0, wide + size, wide);
}

at::Tensor combine(const Call& call, const at::Tensor& data, int64_t axis,
                   const at::Tensor& indices, const at::Tensor& updates) {
  const std::string reduction = call.text("reduction", "none");
  if (reduction == "none") return data.scatter(axis, indices, updates);
  if (reduction == "add") return data.scatter_add(axis, indices, updates);
  const char* name = reduction == "mul" ? "prod" : reduction == "max" ? "amax" : "amin";
  return data.scatter_reduce(axis, indices, updates, name, true);
}

/// Converts [.. k] coordinates in `dims` to flat indices.
at::Tensor places_of(const at::Tensor& coordinates, at::IntArrayRef dims) {
  at::Tensor places = at::zeros(coordinates.sizes().slice(0, coordinates.dim() - 1),
                                coordinates.options().dtype(at::kLong));
  for (int64_t i = 0; i < coordinates.size(-1); ++i) {
    const int64_t size = dims[i];
    places = places * size + non_negative(coordinates.select(-1, i), size);
  }
  return places;
}

}  // namespace

Tensors gather(const Call& call) {
  const at::Tensor& x = call.in(0);
  const int64_t axis = wrapped(call.integer("axis", 0), x.dim());
  const at::Tensor indices = non_negative(indices_of(call), x.size(axis));
  Ints dims = x.sizes().vec();
  dims.erase(dims.begin() + axis);
  dims.insert(dims.begin() + axis, indices.sizes().begin(), indices.sizes().end());
  return {x.index_select(axis, indices.flatten()).reshape(dims)};
}

Tensors gather_elements(const Call& call) {
  const at::Tensor& x = call.in(0);
  const int64_t axis = wrapped(call.integer("axis", 0), x.dim());
  return {x.gather(axis, non_negative(indices_of(call), x.size(axis)))};
}

Tensors gather_nd(const Call& call) {
  const at::Tensor& x = call.in(0);
  const at::Tensor indices = indices_of(call);
  const int64_t batch = call.integer("batch_dims", 0);
  const int64_t depth = indices.size(-1);
  const at::IntArrayRef dims = x.sizes();
  at::Tensor places = places_of(indices, dims.slice(batch, depth));
  // Each batch element has its own rows.
  const int64_t rows = c10::multiply_integers(dims.slice(batch, depth));
  const int64_t batches = c10::multiply_integers(dims.slice(0, batch));
  Ints shape(places.dim(), 1);
  std::copy_n(dims.begin(), batch, shape.begin());
  places = places + (at::arange(batches, places.options()) * rows).reshape(shape);
  Ints row = dims.slice(batch + depth).vec();
  Ints flat = row;
  flat.insert(flat.begin(), batches * rows);
  Ints result = places.sizes().vec();
  result.insert(result.end(), row.begin(), row.end());
  return {x.reshape(flat).index_select(0, places.flatten()).reshape(result)};
}

Tensors scatter_elements(const Call& call) {
  const at::Tensor& x = call.in(0);
  const int64_t axis = wrapped(call.integer("axis", 0), x.dim());
  return {combine(call, x, axis, non_negative(indices_of(call), x.size(axis)), call.in(2))};
}

Tensors scatter_nd(const Call& call) {
  const at::Tensor& x = call.in(0);
  const at::Tensor indices = indices_of(call);
  const size_t depth = indices.size(-1);
  const at::IntArrayRef dims = x.sizes();
  const at::Tensor places = places_of(indices, dims.slice(0, depth)).flatten();
  const int64_t rows = c10::multiply_integers(dims.slice(0, depth));
  const int64_t width = x.numel() / std::max<int64_t>(rows, 1);
  const at::Tensor updates = call.in(2).reshape({places.numel(), width});
  const at::Tensor index = places.unsqueeze(1).expand({places.numel(), width});
  return {combine(call, x.reshape({rows, width}), 0, index, updates).reshape(dims)};
}

Tensors non_zero(const Call& call) { return {at::nonzero(call.in(0)).t()}; }

Tensors one_hot(const Call& call) {
  const at::Tensor& values = call.in(2);
  const int64_t depth = static_cast<int64_t>(call.number_in(1, 0));
  const at::Tensor indices = call.in(0).to(at::kLong);
  const int64_t axis = wrapped(call.integer("axis", -1), indices.dim() + 1);
  const at::Tensor requested = at::where(indices < 0, indices + depth, indices).unsqueeze(axis);
  const at::Tensor hit =
      requested == along(at::arange(depth, indices.options()), axis, indices.dim() + 1);
  return {at::where(hit, values[1], values[0])};
}

Tensors trilu(const Call& call) {
  const int64_t k = static_cast<int64_t>(call.number_in(1, 0));
  const at::Tensor& x = call.in(0);
  return {call.integer("upper", 1) != 0 ? at::triu(x, k) : at::tril(x, k)};
}

Tensors constant_of_shape(const Call& call) {
  const std::vector<double> value = call.reals("value");
  const at::ScalarType type = type_of_name(call, call.text("value.dtype", "float32"));
  const Ints dims = call.ints_in(0);
  return {at::full(dims, value.empty() ? 0.0 : value[0], at::kDouble).to(type)};
}

Tensors range(const Call& call) {
  const at::Tensor& like = call.in(0);
  const double start = call.number_in(0, 0);
  const double step = call.number_in(2, 1);
  const double count = std::ceil((call.number_in(1, 0) - start) / step);
  const at::Tensor steps = at::arange(std::max(0.0, count), at::kDouble);
  return {(steps * step + start).to(like.scalar_type())};
}

Tensors eye_like(const Call& call) {
  const at::Tensor& x = call.in(0);
  const at::ScalarType type =
      call.has("dtype") ? type_of_code(call, call.integer("dtype", 1)) : x.scalar_type();
  const int64_t k = call.integer("k", 0);
  const at::Tensor rows = at::arange(x.size(0), at::kLong).unsqueeze(1);
  const at::Tensor columns = at::arange(x.size(1), at::kLong).unsqueeze(0);
  return {((columns - rows) == k).to(x.device(), type)};
}

Tensors compress(const Call& call) {
  const at::Tensor kept = at::nonzero(call.in(1)).flatten();
  if (!call.has("axis")) return {call.in(0).flatten().index_select(0, kept)};
  return {call.in(0).index_select(call.integer("axis", 0), kept)};
}

Tensors reverse_sequence(const Call& call) {
  const at::Tensor& x = call.in(0);
  const int64_t batch = call.integer("batch_axis", 1);
  const int64_t time = call.integer("time_axis", 0);
  const at::Tensor lengths = along(call.in(1).to(at::kLong), batch, x.dim());
  const at::Tensor steps = along(at::arange(x.size(time), lengths.options()), time, x.dim());
  const at::Tensor places = at::where(steps < lengths, lengths - 1 - steps, steps);
  return {x.gather(time, places.expand(x.sizes()))};
}

/// Returns the distinct elements or slices, their first indices, the inverse indices and the
/// counts.
Tensors unique(const Call& call) {
  const at::Tensor& x = call.in(0);
  const bool is_flat = !call.has("axis");
  const int64_t axis = is_flat ? 0 : wrapped(call.integer("axis", 0), x.dim());
  const at::Tensor rows = is_flat ? x.flatten() : x;
  const auto [sorted, inverse, counts] = at::unique_dim(rows, axis, true, true, true);
  at::Tensor first = at::full({sorted.size(axis)}, rows.size(axis), at::kLong);
  first = first.scatter_reduce(0, inverse, at::arange(rows.size(axis)), "amin");
  if (call.integer("sorted", 1) != 0) return {sorted, first, inverse, counts};
  const at::Tensor order = first.argsort();
  return {sorted.index_select(axis, order), first.index_select(0, order),
          order.argsort().index_select(0, inverse), counts.index_select(0, order)};
}

/// Writes entries of a cache along an axis, from a position per batch element.
Tensors tensor_scatter(const Call& call) {
  at::Tensor cache = call.in(0).clone();
  const at::Tensor& update = call.in(1);
  const int64_t axis = wrapped(call.integer("axis", -2), cache.dim());
  const bool circular = call.text("mode", "linear") == "circular";
  const at::Tensor steps = at::arange(update.size(axis), at::kLong);
  for (int64_t b = 0; b < cache.size(0); ++b) {
    at::Tensor places = steps + (call.has_in(2) ? call.ints_in(2).at(b) : 0);
    if (circular) places = places.remainder(cache.size(axis));
    cache[b].index_copy_(axis - 1, places, update[b]);
  }
  return {cache};
}

}  // namespace parsimony::executor
