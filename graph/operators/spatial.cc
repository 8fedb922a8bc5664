// Operators over spatial axes: sliding windows and sampling.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <span>

#include "parsimony/base/errors.h"
#include "parsimony/graph/attributes.h"
#include "parsimony/graph/errors.h"
#include "parsimony/graph/operators/builder.h"
#include "parsimony/graph/operators/families.h"

namespace parsimony::operators {

// Conv, ConvTranspose and pooling: y = (s + pads - dilation (k - 1) - 1) / stride + 1, rounded down
// or up.
namespace {

// No window is larger; products of what follows from it stay far from overflow.
constexpr int64_t kMostPixels = int64_t{1} << 24;

struct Window {
  std::vector<int64_t> kernel, strides, dilations, begins, ends;
  bool ceil_mode = false;
};

void want_length(const NodeView& view, std::string_view name, std::vector<int64_t>& list, size_t n,
                 int64_t fallback) {
  list = view.attrs(name);
  if (list.empty()) list.assign(n, fallback);
  if (list.size() != n) {
    throw errors::bad_attribute(
        view.label(), name,
        "expected " + std::to_string(n) + " numbers, found " + std::to_string(list.size()));
  }
}

Window read_window(const NodeView& view, std::vector<int64_t> kernel) {
  Window w;
  const size_t n = kernel.size();
  w.kernel = std::move(kernel);
  want_length(view, "strides", w.strides, n, 1);
  want_length(view, "dilations", w.dilations, n, 1);
  std::vector<int64_t> pads;
  want_length(view, "pads", pads, 2 * n, 0);
  w.begins.assign(pads.begin(), pads.begin() + static_cast<std::ptrdiff_t>(n));
  w.ends.assign(pads.begin() + static_cast<std::ptrdiff_t>(n), pads.end());
  w.ceil_mode = view.attr("ceil_mode", 0) != 0;
  const auto check = [&](const std::vector<int64_t>& list, std::string_view name, int64_t least) {
    for (const int64_t number : list) {
      if (number >= least && number <= kMostPixels) continue;
      throw errors::bad_attribute(view.label(), name,
                                  "expected numbers from " + std::to_string(least) + " to " +
                                      std::to_string(kMostPixels) + ", found " +
                                      std::to_string(number));
    }
  };
  check(w.kernel, "kernel_shape", 1);
  check(w.strides, "strides", 1);
  check(w.dilations, "dilations", 1);
  check(pads, "pads", -kMostPixels);
  return w;
}

int64_t slide(const NodeView& view, const Window& w, size_t i, int64_t size) {
  const std::string auto_pad = view.attr("auto_pad", "NOTSET");
  if (auto_pad.starts_with("SAME")) return (size + w.strides[i] - 1) / w.strides[i];
  const bool valid = auto_pad == "VALID";
  const int64_t padded = size + (valid ? 0 : w.begins[i] + w.ends[i]);
  const int64_t room = padded - w.dilations[i] * (w.kernel[i] - 1) - 1;
  // Rounded up, a window may be larger than what it slides over: it then lies at one place.
  if (w.ceil_mode ? room <= -w.strides[i] : room < 0) {
    throw errors::shape_mismatch(view.label(), "spatial size", "at least the kernel's extent",
                                 std::to_string(padded));
  }
  int64_t out = (w.ceil_mode ? (room + w.strides[i] - 1) / w.strides[i] : room / w.strides[i]) + 1;
  // A window that would start in the padding after the end does not count.
  if (w.ceil_mode && (out - 1) * w.strides[i] >= size + w.begins[i]) --out;
  return out;
}

std::vector<int64_t> kernel_of(const NodeView& view, const Shape& weight) {
  if (weight.size() < 2) {
    throw errors::shape_mismatch(view.label(), "rank of the kernel", "2 or more",
                                 std::to_string(weight.size()));
  }
  return {weight.begin() + 2, weight.end()};
}

std::string named_input(const NodeView& view) {
  return "\"" + view.graph().value(view.input(0)).name + "\"";
}

void want_rank(const NodeView& view, const Shape& x, const std::vector<int64_t>& kernel) {
  if (x.size() == kernel.size() + 2) return;
  throw errors::shape_mismatch(view.label(), "rank of " + named_input(view),
                               std::to_string(kernel.size() + 2), std::to_string(x.size()));
}

int64_t group_of(const NodeView& view) {
  const int64_t group = view.attr("group", 1);
  if (group < 1) {
    throw errors::bad_attribute(view.label(), "group", "must be positive");
  }
  return group;
}

/// Channels of the input are those of the kernel, in equal groups on both sides.
void want_channels(const NodeView& view, int64_t found, int64_t expected, int64_t parted) {
  const int64_t group = group_of(view);
  if (found != expected) {
    throw errors::shape_mismatch(view.label(), "channels of " + named_input(view),
                                 std::to_string(expected), std::to_string(found));
  }
  if (parted % group != 0) {
    throw errors::shape_mismatch(view.label(), "channels of the kernel",
                                 "a multiple of group " + std::to_string(group),
                                 std::to_string(parted));
  }
}

/// Whether a quantised pool has its channels last; such a pool is not pruned.
bool has_channels_last(const NodeView& view) { return view.attr("channels_last", 0) != 0; }

}  // namespace

Shapes infer_conv(const NodeView& view) {
  const Shape* x = view.in_shape(0);
  const Shape* w = view.in_shape(std::countr_zero(schema_of(view.node()).linear.weights));
  if (x == nullptr || w == nullptr) return Shapes(1);
  const Window window = read_window(view, kernel_of(view, *w));
  want_rank(view, *x, window.kernel);
  want_channels(view, (*x)[1], element_count({(*w)[1], group_of(view)}), (*w)[0]);
  Shape y{(*x)[0], (*w)[0]};
  for (size_t i = 0; i < window.kernel.size(); ++i)
    y.push_back(slide(view, window, i, (*x)[i + 2]));
  return {y};
}

/// As Conv, with channels behind the pixels, in the kernel too: w[o ..k i].
Shapes infer_conv_channels_last(const NodeView& view) {
  const Shape* x = view.in_shape(0);
  const Shape* w = view.in_shape(1);
  if (x == nullptr || w == nullptr || w->size() < 2) return Shapes(1);
  const Window window = read_window(view, {w->begin() + 1, w->end() - 1});
  want_rank(view, *x, window.kernel);
  want_channels(view, x->back(), element_count({w->back(), group_of(view)}), w->front());
  Shape y{x->front()};
  for (size_t i = 0; i < window.kernel.size(); ++i)
    y.push_back(slide(view, window, i, (*x)[i + 1]));
  y.push_back(w->front());
  return {y};
}

/// One kernel per channel over the input and what came before it: the last inputs are the state.
Shapes infer_causal_conv(const NodeView& view) {
  const Shape* x = view.in_shape(0);
  const Shape* w = view.in_shape(1);
  if (x == nullptr || w == nullptr || x->size() != 3 || w->size() != 3) return Shapes(2);
  return {*x, Shape{(*x)[0], (*x)[1], std::max<int64_t>(0, w->back() - 1)}};
}

Shapes infer_conv_transpose(const NodeView& view) {
  const Shape* x = view.in_shape(0);
  const Shape* w = view.in_shape(1);
  if (x == nullptr || w == nullptr) return Shapes(1);
  const Window window = read_window(view, kernel_of(view, *w));
  want_rank(view, *x, window.kernel);
  want_channels(view, (*x)[1], (*w)[0], (*w)[0]);
  const std::vector<int64_t> fixed = view.attrs("output_shape");
  std::vector<int64_t> extra;
  want_length(view, "output_padding", extra, window.kernel.size(), 0);
  if (!fixed.empty() && fixed.size() < window.kernel.size()) {
    throw errors::bad_attribute(view.label(), "output_shape", "expected a number per spatial axis");
  }
  const bool same = view.attr("auto_pad", "NOTSET").starts_with("SAME");
  Shape y{(*x)[0], element_count({(*w)[1], group_of(view)})};
  for (size_t i = 0; i < window.kernel.size(); ++i) {
    const int64_t s = (*x)[i + 2];
    if (!fixed.empty()) {
      y.push_back(fixed[fixed.size() - window.kernel.size() + i]);
    } else if (same) {
      y.push_back(element_count({s, window.strides[i]}));
    } else {
      const int64_t spread = element_count({s, window.strides[i]}) - window.strides[i];
      y.push_back(spread + std::clamp(extra[i], -kMostPixels, kMostPixels) +
                  window.dilations[i] * (window.kernel[i] - 1) + 1 - window.begins[i] -
                  window.ends[i]);
    }
  }
  return {y};
}

Shapes infer_pool(const NodeView& view) {
  Shapes shapes(static_cast<size_t>(view.outputs()));
  const Shape* x = view.in_shape(0);
  if (x == nullptr || has_channels_last(view)) return shapes;
  const Window window = read_window(view, view.attrs("kernel_shape"));
  want_rank(view, *x, window.kernel);
  Shape y{(*x)[0], (*x)[1]};
  for (size_t i = 0; i < window.kernel.size(); ++i)
    y.push_back(slide(view, window, i, (*x)[i + 2]));
  std::ranges::fill(shapes, y);
  return shapes;
}

Shapes infer_global_pool(const NodeView& view) {
  const Shape* x = view.in_shape(0);
  if (x == nullptr || x->size() < 2 || has_channels_last(view)) return Shapes(1);
  Shape y(x->size(), 1);
  y[0] = (*x)[0];
  y[1] = (*x)[1];
  return {y};
}

/// Experimental operator of ONNX before 1.5: `border` is left, top, right, bottom.
Shapes infer_crop(const NodeView& view) {
  const Shape* x = view.in_shape(0);
  const std::vector<int64_t> border = view.attrs("border");
  if (x == nullptr || x->size() != 4 || border.size() != 4) return Shapes(1);
  for (const int64_t pixels : border) {
    if (pixels < 0 || pixels > kMostPixels) return Shapes(1);
  }
  const std::vector<int64_t> scale = view.attrs("scale");
  if (scale.size() == 2) return {Shape{(*x)[0], (*x)[1], scale[0], scale[1]}};
  return {
      Shape{(*x)[0], (*x)[1], (*x)[2] - border[1] - border[3], (*x)[3] - border[0] - border[2]}};
}

/// Infers the shape of what was pooled, unless an operand says more.
Shapes infer_max_unpool(const NodeView& view) {
  const Shape* x = view.in_shape(0);
  if (x == nullptr || x->size() < 2) return Shapes(1);
  if (view.has_input(2)) {
    const HostTensor* size = view.constant(2);
    return {size == nullptr ? std::nullopt : std::optional<Shape>(size->ints)};
  }
  const Window w = read_window(view, view.attrs("kernel_shape"));
  if (w.kernel.size() + 2 != x->size()) return Shapes(1);
  Shape y = *x;
  for (size_t i = 0; i < w.kernel.size(); ++i) {
    if (y[i + 2] > kMostPixels) return Shapes(1);
    y[i + 2] = (y[i + 2] - 1) * w.strides[i] + w.kernel[i] - w.begins[i] - w.ends[i];
    if (y[i + 2] < 0) return Shapes(1);
  }
  return {y};
}

Shapes infer_max_roi_pool(const NodeView& view) {
  const Shape* x = view.in_shape(0);
  const Shape* regions = view.in_shape(1);
  const std::vector<int64_t> cells = view.attrs("pooled_shape");
  if (x == nullptr || regions == nullptr || x->size() != 4 || regions->empty()) return Shapes(1);
  if (cells.size() != 2) return Shapes(1);
  return {Shape{(*regions)[0], (*x)[1], cells[0], cells[1]}};
}

// Windows that stand side by side, and grids of positions.

/// x[n (c k) l] -> y[n c ..s]: windows of k elements each are added where they overlap
Shapes infer_col_to_im(const NodeView& view) {
  const Shape* x = view.in_shape(0);
  const HostTensor* image = view.constant(1);
  const HostTensor* block = view.constant(2);
  if (x == nullptr || x->size() != 3 || image == nullptr || block == nullptr) return Shapes(1);
  const int64_t window = element_count(block->ints);
  if (window <= 0 || (*x)[1] % window != 0) return Shapes(1);
  Shape y{(*x)[0], (*x)[1] / window};
  y.insert(y.end(), image->ints.begin(), image->ints.end());
  return {y};
}

Factors factor_col_to_im(const NodeView& view) {
  FactorBuilder builder(view);
  const Shape& x = known_shape(view, 0);
  const Shape* y = view.out_shape(0);
  if (y == nullptr || y->size() < 3) throw UnsupportedError("the image is not known");
  builder.tie(view.input(0), 0, view.output(0), 0);
  const int channel = builder.label((*y)[1], "c");
  const int window = builder.label(x[1] / (*y)[1], "k");
  builder.factors().labels.back().pin = "elements of a window";
  const std::array labels{channel, window};
  builder.term(view.input(0), 1, labels);
  builder.term(view.output(0), 1, std::span(labels).first(1));
  builder.pin(view.input(0), 2, "windows");
  for (int d = 2; d < static_cast<int>(y->size()); ++d) {
    builder.pin(view.output(0), d, "windows");
  }
  return builder.take();
}

/// Pictures of a usual size.
Shapes infer_image_decoder(const NodeView& view) {
  constexpr int64_t kSide = 224;
  if (!view.may_assume()) return Shapes(1);
  return {Shape{kSide, kSide, view.attr("pixel_format", "RGB") == "Grayscale" ? 1 : 3}};
}

/// size [n c ..s] -> grid [n ..s, number of spatial dimensions]
Shapes infer_affine_grid(const NodeView& view) {
  const HostTensor* size = view.constant(1);
  if (size == nullptr || size->ints.size() < 3) return Shapes(1);
  Shape grid{size->ints[0]};
  grid.insert(grid.end(), size->ints.begin() + 2, size->ints.end());
  grid.push_back(static_cast<int64_t>(size->ints.size()) - 2);
  return {grid};
}

// Resize and Upsample: a dimension that keeps its size passes on, one that is resampled does not.
namespace {

// Operands: Upsample (7) has an attribute, Upsample (9) and Resize (10) x, scales; later Resize has
// x, roi, scales, sizes.
int scales_input(const NodeView& view) {
  return view.node().op == "Resize" && view.opset() >= 11 ? 2 : 1;
}

std::optional<std::vector<double>> scales_of(const NodeView& view) {
  if (const auto* list = attr_if<std::vector<double>>(view.node(), "scales")) return *list;
  const HostTensor* scales = view.constant(scales_input(view));
  if (scales == nullptr || scales->floats.empty()) return std::nullopt;
  return scales->floats;
}

/// The dimension of x that element `i` of scales or sizes is about.
size_t dim_of(const NodeView& view, size_t i, size_t rank) {
  const std::vector<int64_t> axes = view.attrs("axes");
  return static_cast<size_t>(
      normal_axis(view, i < axes.size() ? axes[i] : static_cast<int64_t>(i), rank));
}

}  // namespace

Shapes infer_resize(const NodeView& view) {
  const Shape* x = view.in_shape(0);
  if (x == nullptr) return Shapes(1);
  Shape y = *x;
  if (const auto scales = scales_of(view)) {
    for (size_t i = 0; i < scales->size() && i < y.size(); ++i) {
      const size_t d = dim_of(view, i, y.size());
      const double size = std::floor(static_cast<double>((*x)[d]) * (*scales)[i]);
      if (!(size >= 0 && size < 1e12)) {
        throw errors::bad_attribute(view.label(), "scales", "not a sane factor");
      }
      y[d] = static_cast<int64_t>(size);
    }
    return {y};
  }
  const HostTensor* sizes = view.constant(3);
  if (sizes == nullptr) return Shapes(1);
  if (view.attr("keep_aspect_ratio_policy", "stretch") != "stretch") return Shapes(1);
  for (size_t i = 0; i < sizes->ints.size() && i < y.size(); ++i) {
    y[dim_of(view, i, y.size())] = sizes->ints[i];
  }
  return {y};
}

Factors factor_resize(const NodeView& view) {
  FactorBuilder builder(view);
  const Shape& x = known_shape(view, 0);
  const Shape& y = *view.out_shape(0);
  for (size_t d = 0; d < x.size(); ++d) {
    const int dim = static_cast<int>(d);
    if (x[d] == y[d]) {
      builder.tie(view.input(0), dim, view.output(0), dim);
    } else {
      builder.pin(view.input(0), dim, "resampled");
      builder.pin(view.output(0), dim, "resampled");
    }
  }
  return builder.take();
}

void patch_resize(PatchView& view) {
  const HostTensor* sizes = view.after.constant(3);
  const Shape* expected = view.after.out_shape(0);
  if (sizes == nullptr || sizes->ints.empty() || expected == nullptr || scales_of(view.before))
    return;
  Shape to(sizes->ints.size());
  std::vector<bool> right(to.size());
  for (size_t i = 0; i < to.size(); ++i) {
    to[i] = (*expected)[dim_of(view.before, i, expected->size())];
    right[i] = sizes->ints[i] == to[i];
  }
  patch_shape_operand(view, 3, "sizes", to, right);
}

}  // namespace parsimony::operators
