// Windows side by side, and convolutions whose windows are moved by data.
#include <algorithm>

#include "parsimony/torch_io/executor/kernels_impl.h"
#include "parsimony/torch_io/executor/window_impl.h"

namespace parsimony::executor {
namespace {

/// Coordinates of the samples that element `k` of each window takes along one axis, of size `size`,
/// as grid_sample wants them: [.., oh, ow] between -1 and 1.
at::Tensor coordinates(const at::Tensor& offsets, const Window& window, size_t axis, int64_t k,
                       int64_t size) {
  const int64_t rank = offsets.dim();
  const int64_t dim = rank - 2 + index(axis);
  const at::Tensor starts = at::arange(offsets.size(dim), offsets.options());
  const at::Tensor places =
      starts * window.stride[axis] - window.begin[axis] + k * window.dilation[axis] + 0.5;
  return (along(places, dim, rank) + offsets) * (2.0 / static_cast<double>(size)) - 1;
}

}  // namespace

/// x[n (c k) l] -> y[n c h w]
Tensors col2im(const Call& call) {
  const Ints image = call.ints_in(1);
  const Ints block = call.ints_in(2);
  if (image.size() != 2) call.unsupported("an image of " + std::to_string(image.size()) + " axes");
  const Ints pads = call.integers("pads", Ints(4, 0));
  const Ints padded{image[0] + pads[0] + pads[2], image[1] + pads[1] + pads[3]};
  const at::Tensor y = at::col2im(call.in(0), padded, block, call.integers("dilations", Ints(2, 1)),
                                  Ints(2, 0), call.integers("strides", Ints(2, 1)));
  return {y.narrow(2, pads[0], image[0]).narrow(3, pads[1], image[1])};
}

/// A channel is present everywhere if one of its columns is.
Tensors added_columns(const Operator& /*op*/, const Call& call, const Tensors& outputs) {
  const at::Tensor& p = call.presence(0);
  const int64_t channels = outputs[0].size(1);
  const at::Tensor there = p.reshape({p.size(0), channels, -1}).any(-1);
  return {there.unsqueeze(-1).unsqueeze(-1).expand(outputs[0].sizes())};
}

Tensors affine_grid(const Call& call) {
  return {at::affine_grid_generator(call.in(0), call.ints_in(1),
                                    call.integer("align_corners", 0) != 0)};
}

/// @source Dai et al., "Deformable Convolutional Networks", 2017; the layout of ONNX's DeformConv
Tensors deform_conv(const Call& call) {
  const at::Tensor& x = call.in(0);
  const at::Tensor& w = call.in(1);
  if (x.dim() != 4) call.unsupported("an image of " + std::to_string(x.dim() - 2) + " axes");
  const Window window = window_of(call, w.sizes().slice(2).vec());
  Ints out;
  for (size_t axis = 0; axis < 2; ++axis) {
    const int64_t reach = (window.kernel[axis] - 1) * window.dilation[axis] + 1;
    const int64_t padded = x.size(2 + index(axis)) + window.begin[axis] + window.end[axis];
    out.push_back((padded - reach) / window.stride[axis] + 1);
  }
  const int64_t n = x.size(0);
  const int64_t parts = call.integer("offset_group", 1);
  const int64_t elements = window.kernel[0] * window.kernel[1];
  const at::Tensor offsets =
      (call.has_in(2) ? call.in(2) : at::zeros({n, parts * elements * 2, out[0], out[1]}))
          .reshape({n, parts, elements, 2, out[0], out[1]});
  const at::Tensor scales =
      call.has_in(4) ? call.in(4).reshape({n, parts, 1, elements, out[0], out[1]}) : at::Tensor();
  Tensors groups;
  for (int64_t g = 0; g < parts; ++g) {
    const at::Tensor channels = x.chunk(parts, 1)[g];
    Tensors columns;
    for (int64_t k = 0; k < elements; ++k) {
      const at::Tensor moved = offsets.select(1, g).select(1, k);
      const at::Tensor rows =
          coordinates(moved.select(1, 0), window, 0, k / window.kernel[1], x.size(2));
      const at::Tensor places =
          coordinates(moved.select(1, 1), window, 1, k % window.kernel[1], x.size(3));
      columns.push_back(at::grid_sampler(channels, at::stack({places, rows}, -1), 0, 0, false));
    }
    at::Tensor all = at::stack(columns, 2);  // [n, channels, elements, oh, ow]
    if (scales.defined()) all = all * scales.select(1, g);
    groups.push_back(all);
  }
  const int64_t group = call.integer("group", 1);
  const at::Tensor columns = at::cat(groups, 1).reshape({n, group, -1, out[0] * out[1]});
  const at::Tensor weights = w.reshape({1, group, w.size(0) / group, -1});
  at::Tensor y = at::matmul(weights, columns).reshape({n, w.size(0), out[0], out[1]});
  if (call.has_in(3)) y = y + along(call.in(3), 1, 4);
  return {y};
}

}  // namespace parsimony::executor
