// Fourier transforms: linear maps along an axis that is transformed as a whole. Real and imaginary
// parts stand along the last axis.
#include "parsimony/base/errors.h"
#include "parsimony/graph/operators/builder.h"
#include "parsimony/graph/operators/families.h"

namespace parsimony::operators {
namespace {

constexpr int kAxisIsOperand = 20;  // of DFT, since this version

std::optional<int> axis_of_dft(const NodeView& view, size_t rank) {
  if (view.opset() < kAxisIsOperand) return normal_axis(view, view.attr("axis", 1), rank);
  if (!view.has_input(2)) return normal_axis(view, -2, rank);
  const HostTensor* axis = view.constant(2);
  if (axis == nullptr || axis->ints.size() != 1) return std::nullopt;
  return normal_axis(view, axis->ints[0], rank);
}

}  // namespace

/// Real and imaginary parts stand along the last axis.
Shapes infer_dft(const NodeView& view) {
  const Shape* x = view.in_shape(0);
  const HostTensor* length = view.constant(1);
  if (x == nullptr || x->size() < 2 || (view.has_input(1) && length == nullptr)) return Shapes(1);
  const auto axis = axis_of_dft(view, x->size());
  if (!axis) return Shapes(1);
  Shape y = *x;
  if (length != nullptr && length->ints.size() == 1) y[*axis] = length->ints[0];
  const bool onesided = view.attr("onesided", 0) != 0;
  const bool inverse = view.attr("inverse", 0) != 0;
  if (onesided && !inverse) y[*axis] = y[*axis] / 2 + 1;
  y.back() = onesided && inverse ? 1 : 2;
  return {y};
}

Factors factor_dft(const NodeView& view) {
  const size_t rank = known_shape(view, 0).size();
  const auto axis = axis_of_dft(view, rank);
  if (!axis) throw UnsupportedError("the axis is computed from data");
  return factor_along_axes(view, {*axis, -1}, "a transform of the whole axis");
}

/// Frames of a signal [n, length(, 1 or 2)]: [n, frames, frequencies, 2]
Shapes infer_stft(const NodeView& view) {
  const Shape* signal = view.in_shape(0);
  const HostTensor* step = view.constant(1);
  const HostTensor* length = view.constant(3);
  const Shape* window = view.in_shape(2);
  const auto is_one = [](const HostTensor* tensor) {
    return tensor != nullptr && tensor->ints.size() == 1;
  };
  if (signal == nullptr || signal->size() < 2 || !is_one(step)) return Shapes(1);
  if (length != nullptr && !is_one(length)) return Shapes(1);
  if (length == nullptr && (view.has_input(3) || window == nullptr || window->size() != 1)) {
    return Shapes(1);
  }
  const int64_t frame = length != nullptr ? length->ints[0] : (*window)[0];
  if (step->ints[0] <= 0 || frame <= 0 || frame > (*signal)[1]) return Shapes(1);
  const int64_t frames = ((*signal)[1] - frame) / step->ints[0] + 1;
  const bool onesided = view.attr("onesided", 1) != 0;
  return {Shape{(*signal)[0], frames, onesided ? frame / 2 + 1 : frame, 2}};
}

}  // namespace parsimony::operators
