// Sliding windows, local and global pooling.
#include <algorithm>
#include <limits>

#include "parsimony/base/ranges.h"
#include "parsimony/torch_io/executor/operators_impl.h"

namespace parsimony::executor {
namespace {

constexpr double kLowest = std::numeric_limits<float>::lowest();

/// Sums over the windows of a padded x, of any rank, by a kernel of ones.
at::Tensor window_sums(const Window& window, const at::Tensor& padded) {
  const size_t rank = window.kernel.size();
  Ints planes{padded.size(0) * padded.size(1), 1};
  Ints ones{1, 1};
  for (size_t i = 0; i < rank; ++i) {
    planes.push_back(padded.size(index(i) + 2));
    ones.push_back(window.kernel[i]);
  }
  const at::Tensor sums =
      at::convolution(padded.reshape(planes), at::ones(ones, padded.options()), {}, window.stride,
                      Ints(rank, 0), window.dilation, false, Ints(rank, 0), 1);
  Ints dims = sums.sizes().vec();
  dims[0] = padded.size(0);
  dims[1] = padded.size(1);
  return sums.reshape(dims);
}

/// Returns how many elements count in each window: [1 1 ..t].
at::Tensor window_counts(const Window& window, const at::Tensor& x, bool with_padding) {
  Ints dims(x.dim(), 1);
  std::copy(x.sizes().begin() + 2, x.sizes().end(), dims.begin() + 2);
  at::Tensor ones = at::ones(dims, x.options().requires_grad(false));
  if (!with_padding) return window_sums(window, padded_for(window, ones, 0));
  Window data = window;
  std::fill(data.beyond.begin(), data.beyond.end(), 0);
  Window beyond = window;
  std::fill(beyond.begin.begin(), beyond.begin.end(), 0);
  std::fill(beyond.end.begin(), beyond.end.end(), 0);
  return window_sums(window, padded_for(beyond, padded_for(data, ones, 1), 0));
}

std::tuple<at::Tensor, at::Tensor> max_pool_any(const Window& window, const at::Tensor& padded) {
  const size_t rank = window.kernel.size();
  const auto pool = rank == 1   ? at::max_pool1d_with_indices
                    : rank == 2 ? at::max_pool2d_with_indices
                                : at::max_pool3d_with_indices;
  return pool(padded, window.kernel, window.stride, Ints(rank, 0), window.dilation, false);
}

/// Converts positions in a padded plane to positions in the whole of x.
at::Tensor flat_indices(const Call& call, const Window& window, const at::Tensor& x,
                        const at::Tensor& padded, at::Tensor places) {
  const size_t rank = window.kernel.size();
  const bool columns_first = call.integer("storage_order", 0) != 0;
  std::vector<at::Tensor> coordinates(rank);
  for (size_t i = rank; i-- > 0;) {
    const int64_t size = padded.size(index(i) + 2);
    coordinates[i] = at::remainder(places, size) - window.begin[i];
    places = at::div(places, size, "floor");
  }
  const int64_t planes = x.size(0) * x.size(1);
  const int64_t area = x.numel() / std::max<int64_t>(planes, 1);
  const at::Tensor first = at::arange(planes, places.options()) * area;
  Ints dims(x.dim(), 1);
  dims[0] = x.size(0);
  dims[1] = x.size(1);
  at::Tensor flat = first.reshape(dims);
  int64_t step = 1;
  for (size_t k = 0; k < rank; ++k) {
    const size_t i = columns_first ? k : rank - 1 - k;
    flat = flat + coordinates[i] * step;
    step *= x.size(index(i) + 2);
  }
  return flat;
}

Ints spatial(const at::Tensor& x) { return successive(2, x.dim()); }

/// Fills absent elements with the lowest value; integers are converted if they have none.
at::Tensor filled_with_lowest(const Call& call) {
  const at::Tensor& own = call.in(0);
  const at::Tensor x = own.is_floating_point() ? own : own.to(at::kDouble);
  const at::Tensor& p = call.presence(0);
  return p.defined() ? x.masked_fill(p.logical_not(), kLowest) : x;
}

}  // namespace

Tensors average_pool(const Call& call) {
  const at::Tensor& x = call.in(0);
  const Window window = window_of(call, call.integers("kernel_shape"));
  const at::Tensor sums = window_sums(window, padded_for(window, x, 0));
  const bool with_padding = call.integer("count_include_pad", 0) != 0;
  const at::Tensor& p = call.presence(0);
  if (!p.defined()) return {sums / window_counts(window, x, with_padding)};
  const at::Tensor counts =
      window_sums(window, padded_for(window, p.to(x.scalar_type()), with_padding ? 1 : 0));
  return {sums / at::clamp_min(counts, 1)};
}

Tensors max_pool(const Call& call) {
  const at::Tensor x = filled_with_lowest(call);
  const Window window = window_of(call, call.integers("kernel_shape"));
  const bool half = x.scalar_type() == at::kHalf;
  const at::Tensor padded = padded_for(window, x, half ? -65504.0 : kLowest);
  const auto [values, places] = max_pool_any(window, padded);
  Tensors results{values.to(call.in(0).scalar_type())};
  if (call.outputs() > 1) {
    results.push_back(flat_indices(call, window, x, padded, places));
  }
  return results;
}

Tensors lp_pool(const Call& call) {
  const double p = call.real("p", 2);
  const Window window = window_of(call, call.integers("kernel_shape"));
  const at::Tensor powers = at::pow(at::abs(call.in(0)), p);
  return {at::pow(window_sums(window, padded_for(window, powers, 0)), 1 / p)};
}

Tensors global_average_pool(const Call& call) {
  return {mean_of(call.in(0), call.presence(0), spatial(call.in(0)))};
}

Tensors global_max_pool(const Call& call) {
  const at::Tensor y = at::amax(filled_with_lowest(call), spatial(call.in(0)), true);
  return {y.to(call.in(0).scalar_type())};
}

Tensors global_lp_pool(const Call& call) {
  const double p = call.real("p", 2);
  const at::Tensor& x = call.in(0);
  return {at::pow(at::sum(at::pow(at::abs(x), p), spatial(x), true), 1 / p)};
}

namespace {

/// Returns the sizes of the grid, the last elements of operand 3, as for Resize.
Ints grid_of(const Call& call) {
  const Ints sizes = call.ints_in(3);
  return {sizes.end() - (call.in(0).dim() - 2), sizes.end()};
}

/// The window of output i along an axis is floor(i in / out) to ceil((i+1) in / out).
template <typename Reduce>
at::Tensor onto_grid(at::Tensor x, const Ints& grid, const Reduce& reduce) {
  for (size_t d = 0; d < grid.size(); ++d) {
    const int64_t axis = index(d) + 2;
    const int64_t in = x.size(axis);
    Tensors cells;
    for (int64_t i = 0; i < grid[d]; ++i) {
      const int64_t begin = i * in / grid[d];
      const int64_t end = ((i + 1) * in + grid[d] - 1) / grid[d];
      cells.push_back(reduce(x.narrow(axis, begin, end - begin), axis));
    }
    x = at::cat(cells, axis);
  }
  return x;
}

}  // namespace

Tensors adaptive_average_pool(const Call& call) {
  return {onto_grid(call.in(0), grid_of(call),
                    [](const at::Tensor& x, int64_t axis) { return at::mean(x, axis, true); })};
}

Tensors adaptive_max_pool(const Call& call) {
  return {onto_grid(call.in(0), grid_of(call),
                    [](const at::Tensor& x, int64_t axis) { return at::amax(x, axis, true); })};
}

/// Inverts MaxPool by its indices, which refer to the whole tensor.
Tensors max_unpool(const Call& call) {
  const at::Tensor& x = call.in(0);
  const size_t rank = x.dim() - 2;
  const Ints kernel = call.integers("kernel_shape");
  const Ints strides = call.integers("strides", Ints(rank, 1));
  const Ints pads = call.integers("pads", Ints(2 * rank, 0));
  Ints dims = x.sizes().vec();
  for (size_t i = 0; i < rank; ++i) {
    dims[i + 2] = (dims[i + 2] - 1) * strides[i] + kernel[i] - pads[i] - pads[rank + i];
  }
  const at::Tensor flat = at::zeros({c10::multiply_integers(dims)}, x.options());
  at::Tensor y = flat.scatter(0, call.in(1).flatten(), x.flatten()).reshape(dims);
  if (!call.has_in(2)) return {y};
  const Ints requested = call.ints_in(2);
  Ints more;  // from the last axis to the first
  for (size_t i = rank; i-- > 0;) {
    more.push_back(0);
    more.push_back(requested.at(i + 2) - dims[i + 2]);
  }
  return {at::constant_pad_nd(y, more, 0)};
}

/// Returns the maximum of each cell of a region, whose bounds are rounded to integers.
Tensors max_roi_pool(const Call& call) {
  const at::Tensor& x = call.in(0);
  const Ints cells = call.integers("pooled_shape");
  const double scale = call.real("spatial_scale", 1);
  const std::vector<double> rois = call.numbers_in(1);
  Tensors regions;
  for (size_t r = 0; r + 5 <= rois.size(); r += 5) {
    at::Tensor region = x[static_cast<int64_t>(rois[r])];
    for (const int64_t axis : {1, 2}) {
      const auto start = static_cast<int64_t>(std::round(rois[r + 3 - axis] * scale));
      const auto end = static_cast<int64_t>(std::round(rois[r + 5 - axis] * scale));
      const double cell = static_cast<double>(std::max<int64_t>(end - start + 1, 1)) /
                          static_cast<double>(cells[axis - 1]);
      Tensors parts;
      for (int64_t i = 0; i < cells[axis - 1]; ++i) {
        const auto at_cell = [&](double edge) {
          return std::clamp<int64_t>(static_cast<int64_t>(edge) + start, 0, x.size(axis + 1));
        };
        const int64_t first = at_cell(std::floor(static_cast<double>(i) * cell));
        const int64_t last = at_cell(std::ceil(static_cast<double>(i + 1) * cell));
        const at::Tensor part = region.narrow(axis, first, std::max<int64_t>(last - first, 0));
        parts.push_back(part.size(axis) > 0 ? part.amax(axis, true)
                                            : at::zeros_like(region.narrow(axis, 0, 1)));
      }
      region = at::cat(parts, axis);
    }
    regions.push_back(region);
  }
  return {at::stack(regions)};
}

namespace {

int64_t up(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace

Window window_of(const Call& call, Ints kernel) {
  const size_t rank = kernel.size();
  Window window;
  window.kernel = std::move(kernel);
  window.stride = call.integers("strides", Ints(rank, 1));
  window.dilation = call.integers("dilations", Ints(rank, 1));
  window.begin = window.end = window.beyond = Ints(rank, 0);
  const Ints pads = call.integers("pads", Ints(2 * rank, 0));
  const std::string mode = call.text("auto_pad", "NOTSET");
  const bool ceil = call.integer("ceil_mode", 0) != 0;
  for (size_t i = 0; i < rank; ++i) {
    const int64_t size = call.in(0).size(index(i) + 2);
    const int64_t stride = window.stride[i];
    const int64_t extent = (window.kernel[i] - 1) * window.dilation[i] + 1;
    if (mode == "SAME_UPPER" || mode == "SAME_LOWER") {
      const int64_t total = std::max<int64_t>(0, (up(size, stride) - 1) * stride + extent - size);
      window.begin[i] = mode == "SAME_UPPER" ? total / 2 : total - total / 2;
      window.end[i] = total - window.begin[i];
      continue;
    }
    if (mode == "VALID") continue;
    window.begin[i] = pads[i];
    window.end[i] = pads[rank + i];
    if (!ceil) continue;
    const int64_t padded = size + pads[i] + pads[rank + i];
    int64_t count = up(padded - extent, stride) + 1;
    // A window that would begin after the data is omitted.
    if ((count - 1) * stride >= size + pads[i]) --count;
    window.beyond[i] = std::max<int64_t>(0, (count - 1) * stride + extent - padded);
  }
  return window;
}

at::Tensor padded_for(const Window& window, const at::Tensor& x, double value) {
  Ints pad;
  bool any = false;
  for (size_t i = window.kernel.size(); i-- > 0;) {
    pad.push_back(window.begin[i]);
    pad.push_back(window.end[i] + window.beyond[i]);
    any = any || pad[pad.size() - 2] != 0 || pad.back() != 0;
  }
  return any ? at::constant_pad_nd(x, pad, value) : x;
}

}  // namespace parsimony::executor
