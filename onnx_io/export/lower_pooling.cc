// Pooling. If torch rounds the number of windows up, ONNX Runtime and the specification differ in
// the last one, which is therefore written as padding.
#include <algorithm>

#include "parsimony/onnx_io/export/lowering_impl.h"

namespace parsimony::onnx_io {
namespace {

using Ints = std::vector<int64_t>;

struct Windows {
  Ints kernel, strides, dilations, begin, end;
  Ints beyond;  ///< after the padding: for the last window, where the number is rounded up
};

Ints or_ones(Ints values, size_t n) { return values.empty() ? Ints(n, 1) : values; }

Windows windows_of(const Lowering& s) {
  Windows w;
  w.kernel = s.view.attrs("kernel_shape");
  const size_t n = w.kernel.size();
  w.strides = or_ones(s.view.attrs("strides"), n);
  w.dilations = or_ones(s.view.attrs("dilations"), n);
  Ints pads = s.view.attrs("pads");
  pads.resize(2 * n);
  w.begin.assign(pads.begin(), pads.begin() + static_cast<std::ptrdiff_t>(n));
  w.end.assign(pads.begin() + static_cast<std::ptrdiff_t>(n), pads.end());
  w.beyond.assign(n, 0);
  if (s.view.attr("ceil_mode", 0) == 0) return w;
  const Shape& x = s.shape();
  for (size_t i = 0; i < n; ++i) {
    const int64_t size = x[i + 2];
    const int64_t extent = (w.kernel[i] - 1) * w.dilations[i] + 1;
    const int64_t padded = size + w.begin[i] + w.end[i];
    int64_t count = (padded - extent + w.strides[i] - 1) / w.strides[i] + 1;
    // Drop a window that would begin after the data.
    if ((count - 1) * w.strides[i] >= size + w.begin[i]) --count;
    w.beyond[i] = std::max<int64_t>(0, (count - 1) * w.strides[i] + extent - padded);
  }
  return w;
}

Ints joined(Ints a, const Ints& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

Ints sum(Ints a, const Ints& b) {
  for (size_t i = 0; i < a.size(); ++i) a[i] += b[i];
  return a;
}

bool any(const Ints& values) {
  return std::ranges::any_of(values, [](int64_t v) { return v != 0; });
}

/// Pads x with zeros, which count.
ValueId padded(Lowering& s, const Windows& w) {
  Ints pads{0, 0};
  pads = joined(pads, w.begin);
  pads = joined(joined(pads, {0, 0}), w.end);
  return s.out.emit("Pad", {s.in(0), s.out.integers(pads)}, {{"mode", std::string("constant")}});
}

}  // namespace

void lower_max_pool(Lowering& s) {
  const Windows w = windows_of(s);
  s.require(s.requested.size() < 2 || !s.requested[1],
            "the indices of the maxima are counted differently");
  s.set_result(s.out.emit("MaxPool", {s.in(0)},
                          {{"kernel_shape", w.kernel},
                           {"strides", w.strides},
                           {"dilations", w.dilations},
                           {"pads", joined(w.begin, sum(w.end, w.beyond))}}));
}

void lower_average_pool(Lowering& s) {
  Windows w = windows_of(s);
  ValueId x = s.in(0);
  bool include = s.view.attr("count_include_pad", 0) != 0;
  if (include && any(w.beyond)) {  // the padding counts, elements beyond it do not
    x = padded(s, w);
    w.begin = w.end = Ints(w.kernel.size(), 0);
    include = false;
  }
  s.set_result(s.out.emit("AveragePool", {x},
                          {{"kernel_shape", w.kernel},
                           {"strides", w.strides},
                           {"pads", joined(w.begin, sum(w.end, w.beyond))},
                           {"count_include_pad", int64_t{include ? 1 : 0}}}));
}

// Pooling to a given size: window i of n over a dimension of s elements begins at floor(i s / n)
// and ends before ceil((i + 1) s / n). Where n divides s all windows are alike.
// @source at::adaptive_avg_pool2d

namespace {

struct Part {
  int64_t begin, end;
};

Part part(int64_t i, int64_t parts, int64_t size) {
  return {i * size / parts, ((i + 1) * size + parts - 1) / parts};
}

struct WindowSizes {
  std::vector<int64_t> from, to;
  bool same = true, divide = true;
};

/// Returns the sizes of the dimensions after the channels.
WindowSizes sizes_of(const Lowering& s) {
  WindowSizes sizes;
  sizes.to = s.known_integers(3);
  sizes.from.assign(s.shape().begin() + 2, s.shape().end());
  s.require(sizes.to.size() == sizes.from.size(), "the number of sizes does not match");
  for (size_t i = 0; i < sizes.to.size(); ++i) {
    s.require(sizes.to[i] > 0 && sizes.from[i] > 0, "a size is 0");
    sizes.same = sizes.same && sizes.to[i] == sizes.from[i];
    sizes.divide = sizes.divide && sizes.from[i] % sizes.to[i] == 0;
  }
  return sizes;
}

void windows(Lowering& s, const std::string& op, const WindowSizes& sizes) {
  std::vector<int64_t> kernel;
  for (size_t i = 0; i < sizes.to.size(); ++i) kernel.push_back(sizes.from[i] / sizes.to[i]);
  s.set_result(s.out.emit(op, {s.in(0)}, {{"kernel_shape", kernel}, {"strides", kernel}}));
}

/// Returns [size, parts]: each column averages one window.
ValueId averages(Lowering& s, int64_t size, int64_t parts) {
  HostTensor matrix{.dtype = s.dtype(), .dims = {size, parts}, .ints = {}, .floats = {}};
  matrix.floats.resize(size * parts);
  for (int64_t i = 0; i < parts; ++i) {
    const Part window = part(i, parts, size);
    for (int64_t k = window.begin; k < window.end; ++k) {
      matrix.floats[k * parts + i] = 1.0 / static_cast<double>(window.end - window.begin);
    }
  }
  return s.out.constant(matrix);
}

ValueId swapped_with_last(Lowering& s, ValueId x, size_t axis) {
  std::vector<int64_t> perm;
  for (size_t d = 0; d < s.rank(); ++d) perm.push_back(static_cast<int64_t>(d));
  std::swap(perm[axis], perm.back());
  return s.out.emit("Transpose", {x}, {{"perm", perm}});
}

ValueId averaged(Lowering& s, ValueId x, size_t axis, int64_t size, int64_t parts) {
  const bool last = axis + 1 == s.rank();
  if (!last) x = swapped_with_last(s, x, axis);
  x = s.out.emit("MatMul", {x, averages(s, size, parts)});
  return last ? x : swapped_with_last(s, x, axis);
}

ValueId largest(Lowering& s, ValueId x, int64_t axis, int64_t size, int64_t parts) {
  std::vector<ValueId> slices;
  for (int64_t i = 0; i < parts; ++i) {
    const Part window = part(i, parts, size);
    const ValueId slice = s.out.emit(
        "Slice",
        {x, s.out.integers({window.begin}), s.out.integers({window.end}), s.out.integers({axis})});
    slices.push_back(s.out.emit("ReduceMax", {slice},
                                {{"axes", std::vector<int64_t>{axis}}, {"keepdims", int64_t{1}}}));
  }
  return slices.size() == 1 ? slices[0] : s.out.emit("Concat", slices, {{"axis", axis}});
}

}  // namespace

void lower_adaptive_average_pool(Lowering& s) {
  const WindowSizes sizes = sizes_of(s);
  if (sizes.same) return s.set_result(s.out.emit("Identity", {s.in(0)}));
  if (sizes.divide) return windows(s, "AveragePool", sizes);
  ValueId x = s.in(0);
  for (size_t i = 0; i < sizes.to.size(); ++i) {
    if (sizes.to[i] != sizes.from[i]) x = averaged(s, x, i + 2, sizes.from[i], sizes.to[i]);
  }
  s.set_result(x);
}

void lower_adaptive_max_pool(Lowering& s) {
  const WindowSizes sizes = sizes_of(s);
  if (sizes.same) return s.set_result(s.out.emit("Identity", {s.in(0)}));
  if (sizes.divide) return windows(s, "MaxPool", sizes);
  ValueId x = s.in(0);
  for (size_t i = 0; i < sizes.to.size(); ++i) {
    const auto axis = static_cast<int64_t>(i) + 2;
    if (sizes.to[i] != sizes.from[i]) x = largest(s, x, axis, sizes.from[i], sizes.to[i]);
  }
  s.set_result(x);
}

}  // namespace parsimony::onnx_io
