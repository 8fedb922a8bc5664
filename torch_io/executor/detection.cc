// Box operators of detectors, and sampling at computed positions.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "parsimony/torch_io/executor/operators_impl.h"

namespace parsimony::executor {
namespace {

using Box = std::array<float, 4>;  ///< top, left, bottom, right

Box box_of(const float* four, bool by_centre) {
  if (by_centre) {  // x, y, width, height
    const auto [x, y, w, h] = std::tuple(four[0], four[1], four[2], four[3]);
    return {y - h / 2, x - w / 2, y + h / 2, x + w / 2};
  }
  return {std::min(four[0], four[2]), std::min(four[1], four[3]), std::max(four[0], four[2]),
          std::max(four[1], four[3])};
}

float area(const Box& box) { return (box[2] - box[0]) * (box[3] - box[1]); }

float overlap(const Box& a, const Box& b) {
  const float height = std::min(a[2], b[2]) - std::max(a[0], b[0]);
  const float width = std::min(a[3], b[3]) - std::max(a[1], b[1]);
  if (height <= 0 || width <= 0) return 0;
  const float both = height * width;
  return both / (area(a) + area(b) - both);
}

struct Limits {
  size_t boxes;  ///< per class
  double overlap;
  double score;  ///< -infinity if none is specified
};

/// Returns indices of the selected boxes, best first.
Ints strongest(const std::vector<Box>& boxes, const float* scores, const Limits& limits) {
  Ints order;
  for (size_t i = 0; i < boxes.size(); ++i) {
    if (scores[i] > limits.score) order.push_back(index(i));
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return scores[a] > scores[b]; });
  Ints kept;
  for (const int64_t i : order) {
    if (kept.size() >= limits.boxes) break;
    const bool clear = std::all_of(kept.begin(), kept.end(), [&](int64_t k) {
      return overlap(boxes[i], boxes[k]) <= limits.overlap;
    });
    if (clear) kept.push_back(i);
  }
  return kept;
}

at::Tensor dense_floats(const at::Tensor& tensor) {
  return tensor.detach().to(at::kCPU, at::kFloat).contiguous();
}

/// Sample positions of RoiAlign along one axis of one box, with weights of the two neighbours.
struct Samples {
  at::Tensor below, above;  ///< indices [cells, samples]
  at::Tensor share;         ///< weight of the upper neighbour
  at::Tensor inside;        ///< 0 for samples beyond the border, which count as zero
};

Samples samples_of(double start, double cell, int64_t cells, int64_t per_cell, int64_t size) {
  const auto last = static_cast<double>(size - 1);
  const auto options = at::TensorOptions().dtype(at::kFloat);
  const at::Tensor steps =
      (at::arange(per_cell, options) + 0.5) * (cell / static_cast<double>(per_cell));
  const at::Tensor positions = at::arange(cells, options).unsqueeze(1) * cell + steps + start;
  const at::Tensor inside =
      positions.ge(-1).logical_and(positions.le(static_cast<double>(size))).to(at::kFloat);
  const at::Tensor held = positions.clamp(0, last);
  const at::Tensor below = held.floor();
  return {below.to(at::kLong), (below + 1).clamp_max(last).to(at::kLong), held - below, inside};
}

/// Maps [channels, size, …] to [channels, cells, samples, …]: linear along axis 1.
at::Tensor interpolated(const at::Tensor& x, const Samples& s) {
  const auto weighted = [&](const at::Tensor& where, const at::Tensor& weight) {
    Ints dims = {x.size(0), where.size(0), where.size(1)};
    for (int64_t axis = 2; axis < x.dim(); ++axis) dims.push_back(x.size(axis));
    Ints ones(dims.size(), 1);
    ones[1] = where.size(0);
    ones[2] = where.size(1);
    return x.index_select(1, where.flatten()).reshape(dims) * weight.reshape(ones);
  };
  return weighted(s.below, (1 - s.share) * s.inside) + weighted(s.above, s.share * s.inside);
}

}  // namespace

Tensors affine_grid(const Call& call) {
  return {at::affine_grid_generator(call.in(0), call.ints_in(1),
                                    call.integer("align_corners", 0) != 0)};
}

Tensors grid_sample(const Call& call) {
  const std::string mode = call.text("mode", "linear");
  const std::string padding = call.text("padding_mode", "zeros");
  const int64_t how = mode == "nearest" ? 1 : mode == "cubic" || mode == "bicubic" ? 2 : 0;
  const int64_t beyond = padding == "border" ? 1 : padding == "reflection" ? 2 : 0;
  return {
      at::grid_sampler(call.in(0), call.in(1), how, beyond, call.integer("align_corners", 0) != 0)};
}

/// Computed without gradients.
Tensors non_max_suppression(const Call& call) {
  const at::Tensor boxes = dense_floats(call.in(0));   // [n, b, 4]
  const at::Tensor scores = dense_floats(call.in(1));  // [n, c, b]
  const Limits limits = {static_cast<size_t>(std::max(0.0, call.number_in(2, 0))),
                         call.number_in(3, 0),
                         call.number_in(4, -std::numeric_limits<double>::infinity())};
  const bool by_centre = call.integer("center_point_box", 0) != 0;
  Ints chosen;
  for (int64_t n = 0; n < scores.size(0); ++n) {
    std::vector<Box> of_image;
    for (int64_t b = 0; b < boxes.size(1); ++b) {
      of_image.push_back(box_of(boxes[n][b].data_ptr<float>(), by_centre));
    }
    for (int64_t c = 0; c < scores.size(1); ++c) {
      for (const int64_t b : strongest(of_image, scores[n][c].data_ptr<float>(), limits)) {
        chosen.insert(chosen.end(), {n, c, b});
      }
    }
  }
  return {at::tensor(chosen, at::kLong).view({-1, 3})};
}

Tensors roi_align(const Call& call) {
  if (call.text("mode", "avg") != "avg") call.unsupported("mode max is not supported");
  const at::Tensor& x = call.in(0);
  const at::Tensor rois = dense_floats(call.in(1));
  const Ints images = call.ints_in(2);
  const int64_t height = call.integer("output_height", 1);
  const int64_t width = call.integer("output_width", 1);
  const int64_t ratio = call.integer("sampling_ratio", 0);
  const double scale = call.real("spatial_scale", 1);
  const bool half_pixel = call.opset() >= 16 &&
                          call.text("coordinate_transformation_mode", "half_pixel") == "half_pixel";
  const double shift = half_pixel ? 0.5 : 0;
  const double least = half_pixel ? 0 : 1;  // older versions stretch boxes to one pixel
  Tensors results;
  for (int64_t r = 0; r < rois.size(0); ++r) {
    const float* roi = rois[r].data_ptr<float>();  // left, top, right, bottom
    const auto along_axis = [&](size_t axis, int64_t cells, int64_t size) {
      const double start = roi[axis] * scale - shift;
      const double cell =
          std::max(roi[axis + 2] * scale - shift - start, least) / static_cast<double>(cells);
      const auto adaptive = static_cast<int64_t>(std::ceil(cell));
      return samples_of(start, cell, cells, ratio > 0 ? ratio : std::max<int64_t>(1, adaptive),
                        size);
    };
    const at::Tensor image = x[images.at(r)];
    const at::Tensor rows = interpolated(image, along_axis(1, height, x.size(2))).mean(2);
    const at::Tensor columns = interpolated(rows.transpose(1, 2), along_axis(0, width, x.size(3)));
    results.push_back(columns.mean(2).transpose(1, 2));
  }
  if (results.empty()) return {at::empty({0, x.size(1), height, width}, x.options())};
  return {at::stack(results)};
}

Tensors sampled(const Operator&, const Call& call, const Tensors& outputs) {
  const at::Tensor& there = call.presence(0);
  if (!there.defined()) return {at::Tensor()};
  const at::Tensor channels = there.transpose(0, 1).flatten(1).any(1);
  return {along(channels, 1, outputs[0].dim()).expand(outputs[0].sizes())};
}

}  // namespace parsimony::executor
