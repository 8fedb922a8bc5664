// Windows. Where torch rounds the number of windows up, ONNX Runtime and the specification differ
// in what the last one is: it is written as padding instead.
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
    // A window that would begin after the data is left out.
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

/// Zeros around x, which count.
ValueId padded(Lowering& s, const Windows& w) {
  Ints pads{0, 0};
  pads = joined(pads, w.begin);
  pads = joined(joined(pads, {0, 0}), w.end);
  return s.out.emit("Pad", {s.in(0), s.out.integers(pads)}, {{"mode", std::string("constant")}});
}

}  // namespace

void lower_max_pool(Lowering& s) {
  const Windows w = windows_of(s);
  s.require(s.wanted.size() < 2 || !s.wanted[1],
            "the indices of the maxima are counted differently");
  s.give(s.out.emit("MaxPool", {s.in(0)},
                    {{"kernel_shape", w.kernel},
                     {"strides", w.strides},
                     {"dilations", w.dilations},
                     {"pads", joined(w.begin, sum(w.end, w.beyond))}}));
}

void lower_average_pool(Lowering& s) {
  Windows w = windows_of(s);
  ValueId x = s.in(0);
  bool include = s.view.attr("count_include_pad", 0) != 0;
  if (include && any(w.beyond)) {  // what lies beyond does not count, the padding does
    x = padded(s, w);
    w.begin = w.end = Ints(w.kernel.size(), 0);
    include = false;
  }
  s.give(s.out.emit("AveragePool", {x},
                    {{"kernel_shape", w.kernel},
                     {"strides", w.strides},
                     {"pads", joined(w.begin, sum(w.end, w.beyond))},
                     {"count_include_pad", int64_t{include ? 1 : 0}}}));
}

}  // namespace parsimony::onnx_io
