// Operators that change a tensor's shape but not its elements; sequences of tensors.
#include <algorithm>
#include <numeric>

#include "parsimony/base/ranges.h"
#include "parsimony/torch_io/executor/operators_impl.h"

namespace parsimony::executor {
namespace {

at::Tensor vector_of(const at::Tensor& like, const Ints& values) {
  return at::tensor(values, at::kLong).to(like.device());
}

/// x[start:end:step] along one axis; a step may be negative.
at::Tensor cut(const at::Tensor& x, int64_t axis, int64_t start, int64_t end, int64_t step) {
  const int64_t size = x.size(axis);
  const auto bounded = [&](int64_t at, int64_t low, int64_t high) {
    return std::clamp(at < 0 ? at + size : at, low, high);
  };
  if (step > 0) {
    const int64_t from = bounded(start, 0, size);
    return x.slice(axis, from, std::max(from, bounded(end, 0, size)), step);
  }
  const int64_t from = bounded(start, -1, size - 1);
  const int64_t to = end < -size ? -1 : bounded(end, -1, size - 1);
  Ints places;
  for (int64_t i = from; i > to; i += step) places.push_back(i);
  return x.index_select(axis, vector_of(x, places));
}

/// Returns the source position of each element of the padded axis.
Ints padded_places(const std::string& mode, int64_t size, int64_t begin, int64_t end) {
  Ints places;
  for (int64_t i = -begin; i < size + end; ++i) {
    if (mode == "edge") {
      places.push_back(std::clamp<int64_t>(i, 0, size - 1));
    } else if (mode == "wrap") {
      places.push_back(((i % size) + size) % size);
    } else {
      const int64_t period = std::max<int64_t>(1, 2 * (size - 1));
      const int64_t at = ((i % period) + period) % period;
      places.push_back(at < size ? at : period - at);
    }
  }
  return places;
}

}  // namespace

Tensors reshape(const Call& call) {
  const at::Tensor& x = call.in(0);
  Ints dims = call.ints(1, "shape");
  if (call.integer("allowzero", 0) == 0) {
    for (size_t i = 0; i < dims.size(); ++i) {
      if (dims[i] == 0) dims[i] = x.size(index(i));
    }
  }
  return {x.reshape(dims)};
}

Tensors flatten(const Call& call) {
  const at::Tensor& x = call.in(0);
  const int64_t axis = call.integer("axis", 1);
  const int64_t from = axis < 0 ? axis + x.dim() : axis;
  const at::IntArrayRef dims = x.sizes();
  return {x.reshape(
      {c10::multiply_integers(dims.slice(0, from)), c10::multiply_integers(dims.slice(from))})};
}

Tensors squeeze(const Call& call) {
  const at::Tensor& x = call.in(0);
  if (!call.has_in(1) && !call.has("axes")) return {x.squeeze()};
  const Ints axes = wrapped(call.ints(1, "axes"), x.dim());
  Ints dims;
  for (int64_t i = 0; i < x.dim(); ++i) {
    if (std::find(axes.begin(), axes.end(), i) == axes.end()) {
      dims.push_back(x.size(i));
    } else {
      TORCH_CHECK(x.size(i) == 1, "axis ", i, " of size ", x.size(i), " cannot be squeezed");
    }
  }
  return {x.reshape(dims)};
}

Tensors unsqueeze(const Call& call) {
  const at::Tensor& x = call.in(0);
  Ints axes = call.ints(1, "axes");
  axes = wrapped(axes, x.dim() + index(axes.size()));
  std::sort(axes.begin(), axes.end());
  Ints dims = x.sizes().vec();
  for (const int64_t axis : axes) dims.insert(dims.begin() + axis, 1);
  return {x.reshape(dims)};
}

Ints order_of_axes(const Call& call) {
  Ints order(call.in(0).dim());
  std::iota(order.rbegin(), order.rend(), 0);
  return call.integers("perm", order);
}

Tensors transpose(const Call& call) { return {call.in(0).permute(order_of_axes(call))}; }

Tensors concat(const Call& call) {
  return {at::cat(call.inputs, wrapped(call.integer("axis", 1), call.in(0).dim()))};
}

Tensors split(const Call& call) {
  const at::Tensor& x = call.in(0);
  const int64_t axis = wrapped(call.integer("axis", 0), x.dim());
  Ints sizes = call.ints(1, "split");
  if (sizes.empty()) {
    const int64_t size = x.size(axis);
    const auto parts = index(call.outputs());
    const int64_t each = (size + parts - 1) / parts;
    for (int64_t i = 0; i < parts; ++i) {
      sizes.push_back(std::clamp<int64_t>(size - i * each, 0, each));
    }
  }
  return at::split_with_sizes(x, sizes, axis);
}

Tensors slice(const Call& call) {
  at::Tensor x = call.in(0);
  const Ints starts = call.ints(1, "starts");
  const Ints ends = call.ints(2, "ends");
  Ints axes = call.ints(3, "axes");
  Ints steps = call.has_in(4) ? call.ints_in(4) : Ints(starts.size(), 1);
  if (axes.empty()) axes = successive(0, starts.size());
  for (size_t i = 0; i < starts.size(); ++i) {
    x = cut(x, wrapped(axes[i], x.dim()), starts[i], ends[i], steps[i]);
  }
  return {x};
}

/// Returns the padding of every axis: beginnings, then ends.
Ints pads_of(const Call& call) {
  const int64_t rank = call.in(0).dim();
  const Ints given = call.ints(1, "pads");
  if (!call.has_in(3)) return given;
  const Ints axes = wrapped(call.ints_in(3), rank);
  Ints pads(2 * rank, 0);
  for (size_t i = 0; i < axes.size(); ++i) {
    pads[axes[i]] = given[i];
    pads[axes[i] + rank] = given[axes.size() + i];
  }
  return pads;
}

Tensors pad(const Call& call) {
  at::Tensor x = call.in(0);
  const Ints pads = pads_of(call);
  const int64_t rank = x.dim();
  const std::string mode = call.text("mode", "constant");
  if (mode == "constant") {
    Ints order;
    for (int64_t i = rank - 1; i >= 0; --i) {
      order.push_back(pads[i]);
      order.push_back(pads[i + rank]);
    }
    const double value = call.opset() < 11 ? call.real("value", 0) : call.number_in(2, 0);
    return {at::constant_pad_nd(x, order, value)};
  }
  for (int64_t i = 0; i < rank; ++i) {
    const int64_t begin = pads[i];
    const int64_t end = pads[i + rank];
    if (begin == 0 && end == 0) continue;
    x = x.index_select(i, vector_of(x, padded_places(mode, x.size(i), begin, end)));
  }
  return {x};
}

Tensors expand(const Call& call) {
  const at::Tensor& x = call.in(0);
  const Ints requested = call.ints_in(1);
  const auto rank = std::max(x.dim(), index(requested.size()));
  Ints dims(rank, 1);
  std::copy(x.sizes().rbegin(), x.sizes().rend(), dims.rbegin());
  for (size_t i = 0; i < requested.size(); ++i) {
    int64_t& dim = dims[dims.size() - requested.size() + i];
    if (requested[i] != 1) dim = requested[i];
  }
  return {x.expand(dims)};
}

Tensors tile(const Call& call) { return {call.in(0).repeat(call.ints_in(1))}; }

Tensors depth_to_space(const Call& call) {
  const at::Tensor& x = call.in(0);
  const int64_t r = call.integer("blocksize", 1);
  const int64_t c = x.size(1) / (r * r);
  const bool crd = call.text("mode", "DCR") == "CRD";
  const at::Tensor split =
      crd ? x.reshape({x.size(0), c, r, r, x.size(2), x.size(3)}).permute({0, 1, 4, 2, 5, 3})
          : x.reshape({x.size(0), r, r, c, x.size(2), x.size(3)}).permute({0, 3, 4, 1, 5, 2});
  return {split.reshape({x.size(0), c, x.size(2) * r, x.size(3) * r})};
}

Tensors space_to_depth(const Call& call) {
  const at::Tensor& x = call.in(0);
  const int64_t r = call.integer("blocksize", 1);
  const int64_t h = x.size(2) / r;
  const int64_t w = x.size(3) / r;
  return {x.reshape({x.size(0), x.size(1), h, r, w, r})
              .permute({0, 3, 5, 1, 2, 4})
              .reshape({x.size(0), x.size(1) * r * r, h, w})};
}

/// border: left, top, right, bottom; experimental, up to version 8.
Tensors crop(const Call& call) {
  const at::Tensor& x = call.in(0);
  const Ints border = call.integers("border", {0, 0, 0, 0});
  const Ints scale = call.integers("scale");
  const bool sized = scale.size() == 2;
  const int64_t h = sized ? scale[0] : x.size(2) - border[1] - border[3];
  const int64_t w = sized ? scale[1] : x.size(3) - border[0] - border[2];
  return {x.narrow(2, border[1], h).narrow(3, border[0], w)};
}

Tensors shape(const Call& call) {
  const at::Tensor& x = call.in(0);
  const int64_t rank = x.dim();
  const auto bounded = [&](int64_t at) {
    return std::clamp<int64_t>(at < 0 ? at + rank : at, 0, rank);
  };
  const int64_t start = bounded(call.integer("start", 0));
  const int64_t end = bounded(call.integer("end", rank));
  const at::IntArrayRef dims = x.sizes();
  return {at::tensor(Ints(dims.begin() + start, dims.begin() + std::max(start, end)), at::kLong)};
}

Tensors size(const Call& call) { return {at::scalar_tensor(call.in(0).numel(), at::kLong)}; }

Tensors optional_has_element(const Call& call) {
  return {at::scalar_tensor(call.has_in(0), at::kBool)};
}

/// Crops or zero-pads around the centre of each axis.
Tensors center_crop_pad(const Call& call) {
  at::Tensor x = call.in(0);
  const Ints sizes = call.ints_in(1);
  const Ints axes = call.integers("axes", successive(0, x.dim()));
  for (size_t i = 0; i < sizes.size(); ++i) {
    const int64_t axis = wrapped(axes.at(i), x.dim());
    const int64_t more = sizes[i] - x.size(axis);
    if (more <= 0) {
      x = x.narrow(axis, -more / 2, sizes[i]);
      continue;
    }
    Ints pads(2 * (x.dim() - axis), 0);  // from the last axis to the first
    pads[pads.size() - 2] = more / 2;
    pads[pads.size() - 1] = more - more / 2;
    x = at::constant_pad_nd(x, pads, 0);
  }
  return {x};
}

/// Along axes that change their size, an element is present everywhere if it is anywhere.
Tensors cropped_presence(const Operator& /*op*/, const Call& call, const Tensors& outputs) {
  at::Tensor p = call.presence(0);
  for (int64_t axis = 0; axis < p.dim(); ++axis) {
    if (p.size(axis) != outputs[0].size(axis)) p = p.any(axis, true);
  }
  return {p.expand(outputs[0].sizes())};
}

// Sequences of tensors of one shape, as one tensor with an additional first axis.

namespace {

/// Returns the position in operand `i`; `fallback` if it is absent.
int64_t place_in(const Call& call, size_t i, int64_t fallback) {
  if (!call.has_in(i)) return fallback;
  const int64_t place = call.ints_in(i).at(0);
  return place < 0 ? place + call.in(0).size(0) : place;
}

}  // namespace

Tensors sequence_construct(const Call& call) {
  for (const at::Tensor& tensor : call.inputs) {
    if (tensor.sizes() != call.in(0).sizes())
      call.unsupported("sequences of tensors of different shapes are not supported");
  }
  return {at::stack(call.inputs)};
}

Tensors sequence_empty(const Call& /*call*/) { return {at::empty({0})}; }

Tensors sequence_at(const Call& call) { return {call.in(0).select(0, place_in(call, 1, 0))}; }

Tensors sequence_length(const Call& call) {
  return {at::scalar_tensor(call.in(0).size(0), at::kLong)};
}

Tensors sequence_insert(const Call& call) {
  const at::Tensor& list = call.in(0);
  const at::Tensor added = call.in(1).unsqueeze(0);
  if (list.size(0) == 0) return {added};
  if (list.sizes().slice(1) != call.in(1).sizes())
    call.unsupported("sequences of tensors of different shapes are not supported");
  const int64_t place = place_in(call, 2, list.size(0));
  return {at::cat({list.narrow(0, 0, place), added, list.slice(0, place)})};
}

Tensors sequence_erase(const Call& call) {
  const at::Tensor& list = call.in(0);
  const int64_t place = place_in(call, 1, list.size(0) - 1);
  return {at::cat({list.narrow(0, 0, place), list.slice(0, place + 1)})};
}

Tensors split_to_sequence(const Call& call) {
  const at::Tensor& x = call.in(0);
  const int64_t axis = wrapped(call.integer("axis", 0), x.dim());
  if (!call.has_in(1)) {
    const bool keeps = call.integer("keepdims", 1) != 0;
    const at::Tensor list = at::stack(x.unbind(axis));
    return {keeps ? list.unsqueeze(axis + 1) : list};
  }
  const Ints sizes = call.ints_in(1);
  const bool even = !sizes.empty() && sizes[0] > 0 &&
                    std::ranges::all_of(sizes, [&](int64_t n) { return n == sizes[0]; });
  if (!even || x.size(axis) % sizes[0] != 0)
    call.unsupported("sequences of tensors of different shapes are not supported");
  return {at::stack(x.split(sizes[0], axis))};
}

Tensors concat_from_sequence(const Call& call) {
  const Tensors all = call.in(0).unbind(0);
  const bool is_new = call.integer("new_axis", 0) != 0;
  const int64_t axis = wrapped(call.integer("axis", 0), all.at(0).dim() + (is_new ? 1 : 0));
  return {is_new ? at::stack(all, axis) : at::cat(all, axis)};
}

}  // namespace parsimony::executor
