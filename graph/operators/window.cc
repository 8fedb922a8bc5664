// Conv, ConvTranspose and pooling: y = (s + pads - dilation (k - 1) - 1) / stride + 1, rounded down
// or up.
#include <algorithm>
#include <bit>

#include "parsimony/graph/errors.h"
#include "parsimony/graph/operators/families.h"

namespace parsimony::operators {
namespace {

// No window is larger; products of what follows from it stay far from overflow.
constexpr int64_t kMost = int64_t{1} << 24;

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
        "wanted " + std::to_string(n) + " numbers, found " + std::to_string(list.size()));
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
      if (number >= least && number <= kMost) continue;
      throw errors::bad_attribute(view.label(), name,
                                  "wanted numbers from " + std::to_string(least) + " to " +
                                      std::to_string(kMost) + ", found " + std::to_string(number));
    }
  };
  check(w.kernel, "kernel_shape", 1);
  check(w.strides, "strides", 1);
  check(w.dilations, "dilations", 1);
  check(pads, "pads", -kMost);
  return w;
}

int64_t slide(const NodeView& view, const Window& w, size_t i, int64_t size) {
  const std::string auto_pad = view.attr("auto_pad", "NOTSET");
  if (auto_pad.starts_with("SAME")) return (size + w.strides[i] - 1) / w.strides[i];
  const bool valid = auto_pad == "VALID";
  const int64_t padded = size + (valid ? 0 : w.begins[i] + w.ends[i]);
  const int64_t room = padded - w.dilations[i] * (w.kernel[i] - 1) - 1;
  if (room < 0) {
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
void want_channels(const NodeView& view, int64_t found, int64_t wanted, int64_t parted) {
  const int64_t group = group_of(view);
  if (found != wanted) {
    throw errors::shape_mismatch(view.label(), "channels of " + named_input(view),
                                 std::to_string(wanted), std::to_string(found));
  }
  if (parted % group != 0) {
    throw errors::shape_mismatch(view.label(), "channels of the kernel",
                                 "a multiple of group " + std::to_string(group),
                                 std::to_string(parted));
  }
}

/// Of quantised pools, which are not pruned then.
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
    throw errors::bad_attribute(view.label(), "output_shape", "wanted a number per spatial axis");
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
      y.push_back(spread + std::clamp(extra[i], -kMost, kMost) +
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
    if (pixels < 0 || pixels > kMost) return Shapes(1);
  }
  const std::vector<int64_t> scale = view.attrs("scale");
  if (scale.size() == 2) return {Shape{(*x)[0], (*x)[1], scale[0], scale[1]}};
  return {
      Shape{(*x)[0], (*x)[1], (*x)[2] - border[1] - border[3], (*x)[3] - border[0] - border[2]}};
}

/// As large as what was pooled, unless an operand says more.
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
    if (y[i + 2] > kMost) return Shapes(1);
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

}  // namespace parsimony::operators
