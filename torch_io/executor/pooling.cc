// Pooling over windows and over everything.
#include <algorithm>
#include <limits>

#include "parsimony/base/ranges.h"
#include "parsimony/torch_io/executor/kernels_impl.h"
#include "parsimony/torch_io/executor/window_impl.h"

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

/// How many elements count in each window: [1 1 ..t].
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

/// From places in a padded plane to places in the whole of x.
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
  const at::Tensor filled = call.filled(0, kLowest);
  const bool floating = filled.is_floating_point();
  const at::Tensor x = floating ? filled : filled.to(at::kDouble);
  const Window window = window_of(call, call.integers("kernel_shape"));
  const bool half = x.scalar_type() == at::kHalf;
  const at::Tensor padded = padded_for(window, x, half ? -65504.0 : kLowest);
  const auto [values, places] = max_pool_any(window, padded);
  Tensors results{values.to(filled.scalar_type())};
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
  return {at::amax(call.filled(0, kLowest), spatial(call.in(0)), true)};
}

Tensors global_lp_pool(const Call& call) {
  const double p = call.real("p", 2);
  const at::Tensor& x = call.in(0);
  return {at::pow(at::sum(at::pow(at::abs(x), p), spatial(x), true), 1 / p)};
}

namespace {

/// Sizes of the grid, the last elements of operand 3, as Resize has it.
Ints grid_of(const Call& call) {
  const Ints sizes = call.ints_in(3);
  return {sizes.end() - (call.in(0).dim() - 2), sizes.end()};
}

/// Where the window of output i begins and ends along an axis: floor(i in / out), ceil((i+1) in /
/// out).
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

}  // namespace parsimony::executor
