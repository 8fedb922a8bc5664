// Resize and Upsample, axis by axis: every mode is separable.
#include <algorithm>
#include <cmath>

#include "parsimony/base/ranges.h"
#include "parsimony/torch_io/executor/operators_impl.h"

namespace parsimony::executor {
namespace {

struct Axis {
  int64_t in = 0;
  int64_t out = 0;
  double scale = 1;
  double roi_start = 0;
  double roi_end = 1;
};

struct Mode {
  std::string kind;        ///< nearest, linear, cubic
  std::string coordinate;  ///< coordinate_transformation_mode
  std::string nearest;     ///< nearest_mode; "simple" is that of version 10
  double cubic = -0.75;
  bool exclude_outside = false;
  bool antialias = false;
};

/// Returns the position of output element `i` on the input's axis.
double coordinate_of(const Mode& mode, const Axis& axis, int64_t i) {
  const auto at = static_cast<double>(i);
  const auto in = static_cast<double>(axis.in);
  const auto out = static_cast<double>(axis.out);
  if (mode.coordinate == "asymmetric") return at / axis.scale;
  if (mode.coordinate == "align_corners") return axis.out == 1 ? 0 : at * (in - 1) / (out - 1);
  if (mode.coordinate == "pytorch_half_pixel" && axis.out == 1) return 0;
  if (mode.coordinate == "tf_half_pixel_for_nn") return (at + 0.5) / axis.scale;
  if (mode.coordinate == "tf_crop_and_resize") {
    const double length = axis.roi_end - axis.roi_start;
    return axis.out > 1 ? axis.roi_start * (in - 1) + at * length * (in - 1) / (out - 1)
                        : 0.5 * (axis.roi_start + axis.roi_end) * (in - 1);
  }
  if (mode.coordinate == "half_pixel_symmetric") {
    const double adjustment = out / (axis.scale * in);
    return in / 2 * (1 - adjustment) + (at + 0.5) / axis.scale - 0.5;
  }
  return (at + 0.5) / axis.scale - 0.5;
}

int64_t nearest_to(const Mode& mode, const Axis& axis, double x) {
  double place = 0;
  if (mode.nearest == "simple") {
    place = axis.scale < 1 ? std::ceil(x) : std::floor(x);
  } else if (mode.nearest == "floor") {
    place = std::floor(x);
  } else if (mode.nearest == "ceil") {
    place = std::ceil(x);
  } else if (mode.nearest == "round_prefer_ceil") {
    place = std::floor(x + 0.5);
  } else {
    place = std::ceil(x - 0.5);
  }
  return std::clamp(static_cast<int64_t>(place), int64_t{0}, axis.in - 1);
}

double kernel_at(const Mode& mode, double distance) {
  const double d = std::abs(distance);
  if (mode.kind == "linear") return std::max(0.0, 1 - d);
  const double a = mode.cubic;
  if (d <= 1) return ((a + 2) * d - (a + 3)) * d * d + 1;
  if (d < 2) return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a;
  return 0;
}

/// Returns the weight of each input element in each output element: [out, in].
at::Tensor contributions(const Mode& mode, const Axis& axis) {
  at::Tensor matrix = at::zeros({axis.out, axis.in}, at::kDouble);
  auto cells = matrix.accessor<double, 2>();
  const double stretch = mode.antialias && axis.scale < 1 ? 1 / axis.scale : 1;
  const double reach = (mode.kind == "linear" ? 1 : 2) * stretch;
  for (int64_t i = 0; i < axis.out; ++i) {
    const double x = coordinate_of(mode, axis, i);
    const auto first = static_cast<int64_t>(std::floor(x - reach));
    const auto last = static_cast<int64_t>(std::ceil(x + reach));
    double total = 0;
    for (int64_t k = first; k <= last; ++k) {
      const double weight = kernel_at(mode, (static_cast<double>(k) - x) / stretch);
      const bool outside = k < 0 || k >= axis.in;
      if (outside && mode.exclude_outside) continue;
      total += weight;
      cells[i][std::clamp<int64_t>(k, 0, axis.in - 1)] += weight;
    }
    for (int64_t k = 0; k < axis.in && total != 0; ++k) cells[i][k] /= total;
  }
  return matrix;
}

at::Tensor resize_axis(const Mode& mode, const at::Tensor& x, int64_t dim, const Axis& axis) {
  if (mode.kind == "nearest") {
    Ints places;
    for (int64_t i = 0; i < axis.out; ++i) {
      places.push_back(nearest_to(mode, axis, coordinate_of(mode, axis, i)));
    }
    return x.index_select(dim, at::tensor(places, at::kLong).to(x.device()));
  }
  const bool floating = x.is_floating_point();
  const at::Tensor data = floating ? x : x.to(at::kFloat);
  const at::Tensor matrix = contributions(mode, axis).to(data.device(), data.scalar_type());
  const at::Tensor y = at::matmul(data.transpose(dim, -1), matrix.t()).transpose(dim, -1);
  return floating ? y : at::round(y).to(x.scalar_type());
}

/// Returns false for elements whose position is outside the input.
at::Tensor inside(const Mode& mode, const Axis& axis, int64_t dim, int64_t rank) {
  at::Tensor flags = at::ones({axis.out}, at::kBool);
  for (int64_t i = 0; i < axis.out; ++i) {
    const double x = coordinate_of(mode, axis, i);
    if (x < 0 || x > static_cast<double>(axis.in - 1)) flags[i] = false;
  }
  return along(flags, dim, rank);
}

struct Targets {
  std::vector<double> scales;
  Ints sizes;
  std::vector<double> roi;
};

Targets targets_of(const Call& call) {
  if (call.node.op == "Upsample" || call.opset() < 11) {
    return {call.has_in(1) ? call.numbers_in(1) : call.reals("scales"), {}, {}};
  }
  Targets targets;
  if (call.has_in(1)) targets.roi = call.numbers_in(1);
  if (call.has_in(2)) targets.scales = call.numbers_in(2);
  if (call.has_in(3)) targets.sizes = call.ints_in(3);
  return targets;
}

/// Returns sizes and scales; one scale for all axes if the aspect ratio is kept.
std::vector<Axis> axes_of(const Call& call, const Targets& targets, const Ints& dims) {
  const at::Tensor& x = call.in(0);
  std::vector<Axis> axes;
  for (size_t i = 0; i < dims.size(); ++i) {
    Axis axis;
    axis.in = x.size(dims[i]);
    if (!targets.sizes.empty()) {
      axis.out = targets.sizes[i];
      axis.scale = static_cast<double>(axis.out) / static_cast<double>(axis.in);
    } else {
      axis.scale = targets.scales.at(i);
      axis.out = static_cast<int64_t>(std::floor(static_cast<double>(axis.in) * axis.scale));
    }
    if (targets.roi.size() == 2 * dims.size()) {
      axis.roi_start = targets.roi[i];
      axis.roi_end = targets.roi[dims.size() + i];
    }
    axes.push_back(axis);
  }
  const std::string policy = call.text("keep_aspect_ratio_policy", "stretch");
  if (policy == "stretch" || targets.sizes.empty()) return axes;
  const auto by_scale = [](const Axis& a, const Axis& b) { return a.scale < b.scale; };
  const double scale = policy == "not_larger"
                           ? std::min_element(axes.begin(), axes.end(), by_scale)->scale
                           : std::max_element(axes.begin(), axes.end(), by_scale)->scale;
  for (Axis& axis : axes) {
    axis.scale = scale;
    axis.out = static_cast<int64_t>(std::floor(scale * static_cast<double>(axis.in) + 0.5));
  }
  return axes;
}

Mode mode_of(const Call& call) {
  const bool old = call.node.op == "Upsample" || call.opset() < 11;
  Mode mode;
  mode.kind = call.text("mode", "nearest");
  if (mode.kind == "bilinear") mode.kind = "linear";
  mode.coordinate = old ? "asymmetric" : call.text("coordinate_transformation_mode", "half_pixel");
  mode.nearest = old ? "simple" : call.text("nearest_mode", "round_prefer_floor");
  mode.cubic = call.real("cubic_coeff_a", -0.75);
  mode.exclude_outside = call.integer("exclude_outside", 0) != 0;
  mode.antialias = call.integer("antialias", 0) != 0;
  return mode;
}

}  // namespace

Tensors resize(const Call& call) {
  at::Tensor x = call.in(0);
  const Mode mode = mode_of(call);
  Ints dims = call.integers("axes");
  if (dims.empty()) dims = successive(0, x.dim());
  dims = wrapped(dims, x.dim());
  const std::vector<Axis> axes = axes_of(call, targets_of(call), dims);
  const bool crops = mode.coordinate == "tf_crop_and_resize";
  at::Tensor within;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (axes[i].in == axes[i].out && axes[i].scale == 1 && !crops) continue;
    x = resize_axis(mode, x, dims[i], axes[i]);
    if (!crops) continue;
    const at::Tensor flags = inside(mode, axes[i], dims[i], x.dim());
    within = within.defined() ? within & flags : flags;
  }
  if (!within.defined()) return {x};
  const double outside = call.real("extrapolation_value", 0);
  return {x.masked_fill(within.logical_not().to(x.device()), outside)};
}

}  // namespace parsimony::executor
