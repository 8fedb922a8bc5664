// Sums of products: convolutions, also deformable ones, matrix products, Einsum.
#include <ATen/core/grad_mode.h>

#include <algorithm>

#include "parsimony/torch_io/executor/operators_impl.h"

namespace parsimony::executor {
namespace {

struct OutputPadding {
  Ints begin;  ///< elements removed from the full result
  Ints end;    ///< negative: the result is longer than the full one
};

/// Pads a transposed convolution. The full result has stride (in - 1) + extent elements per axis.
OutputPadding transposed_padding(const Call& call, const Ints& full) {
  const size_t rank = full.size();
  const Ints extra = call.integers("output_padding", Ints(rank, 0));
  const Ints shape = call.integers("output_shape");
  const std::string mode = call.text("auto_pad", "NOTSET");
  OutputPadding padding{Ints(rank, 0), Ints(rank, 0)};
  const Ints pads = call.integers("pads", Ints(2 * rank, 0));
  const Ints strides = call.integers("strides", Ints(rank, 1));
  for (size_t i = 0; i < rank; ++i) {
    const bool same = mode.starts_with("SAME");
    if (shape.empty() && !same) {
      const bool valid = mode == "VALID";
      padding.begin[i] = valid ? 0 : pads[i];
      padding.end[i] = (valid ? 0 : pads[rank + i]) - extra[i];
      continue;
    }
    // SAME: the input's size times the stride.
    const int64_t requested =
        shape.empty() ? call.in(0).size(index(i) + 2) * strides[i] : shape[shape.size() - rank + i];
    const int64_t total = std::max<int64_t>(0, full[i] + extra[i] - requested);
    padding.begin[i] = mode == "SAME_UPPER" ? total / 2 : total - total / 2;
    padding.end[i] = full[i] - requested - padding.begin[i];
  }
  return padding;
}

/// Whether positions of a sample do not interact.
bool is_pointwise(const at::Tensor& x, const at::Tensor& w, const Window& window, int64_t groups) {
  const auto are_ones = [](const auto& numbers) {
    return std::ranges::all_of(numbers, [](int64_t number) { return number == 1; });
  };
  return x.size(0) == 1 && groups == 1 && x.is_cpu() && x.scalar_type() == w.scalar_type() &&
         are_ones(window.kernel) && are_ones(window.stride);
}

/// Computes a matrix product, whose gradients are much faster than those of at::convolution, which
/// copies the input to columns for them.
at::Tensor pointwise(const at::Tensor& x, const at::Tensor& w, const at::Tensor& bias) {
  const at::Tensor places = x.flatten(2).squeeze(0);
  const at::Tensor y = bias.defined() ? at::addmm(bias.unsqueeze(1), w.flatten(1), places)
                                      : at::mm(w.flatten(1), places);
  Ints dims = x.sizes().vec();
  dims[1] = w.size(0);
  return y.view(dims);
}

}  // namespace

Tensors conv(const Call& call) {
  const Window window = window_of(call, call.in(1).sizes().slice(2).vec());
  const size_t rank = window.kernel.size();
  const at::Tensor x = padded_for(window, call.in(0), 0);
  if (at::GradMode::is_enabled() && call.in(1).requires_grad() &&
      is_pointwise(x, call.in(1), window, call.integer("group", 1))) {
    return {pointwise(x, call.in(1), call.in(2))};
  }
  return {at::convolution(x, call.in(1), call.in(2), window.stride, Ints(rank, 0), window.dilation,
                          false, Ints(rank, 0), call.integer("group", 1))};
}

Tensors conv_channels_last(const Call& call) {
  const auto channels_first = [](const at::Tensor& x) { return x.movedim(-1, 1); };
  const Call plain = call.on({channels_first(call.in(0)), channels_first(call.in(1)), call.in(2)});
  return {conv(plain).front().movedim(1, -1)};
}

/// Each channel by itself, over its past and its present.
/// @source ONNX operator CausalConvWithState, opset 27
Tensors causal_conv_with_state(const Call& call) {
  const at::Tensor& x = call.in(0);
  const at::Tensor& w = call.in(1);
  const int64_t past = w.size(2) - 1;
  const at::Tensor before =
      call.has_in(3) ? call.in(3) : at::zeros({x.size(0), x.size(1), past}, x.options());
  const at::Tensor all = at::cat({before, x}, 2);
  const at::Tensor y = at::convolution(all, w, call.in(2), {1}, {0}, {1}, false, {0}, x.size(1));
  const bool gated = call.text("activation", "none") != "none";
  return {gated ? at::silu(y) : y, all.narrow(2, all.size(2) - past, past)};
}

Tensors causal_presence(const Operator& /*op*/, const Call& call, const Tensors& outputs) {
  const at::Tensor& p = call.presence(0);
  if (!p.defined()) return {};
  return {p, p.narrow(2, 0, 1).expand(outputs[1].sizes())};
}

Tensors conv_transpose(const Call& call) {
  const at::Tensor& x = call.in(0);
  const at::Tensor& w = call.in(1);
  const Ints kernel = w.sizes().slice(2).vec();
  const size_t rank = kernel.size();
  const Ints strides = call.integers("strides", Ints(rank, 1));
  const Ints dilations = call.integers("dilations", Ints(rank, 1));
  at::Tensor y = at::convolution(x, w, {}, strides, Ints(rank, 0), dilations, true, Ints(rank, 0),
                                 call.integer("group", 1));
  const OutputPadding padding = transposed_padding(call, y.sizes().slice(2).vec());
  Ints pad;  // from the last axis to the first
  for (size_t i = rank; i-- > 0;) {
    pad.push_back(-padding.begin[i]);
    pad.push_back(-padding.end[i]);
  }
  y = at::constant_pad_nd(y, pad, 0);
  if (call.has_in(2)) y = y + along(call.in(2), 1, y.dim());
  return {y};
}

Tensors matmul(const Call& call) { return {at::matmul(call.in(0), call.in(1))}; }

Tensors gemm(const Call& call) {
  const at::Tensor a = call.integer("transA", 0) != 0 ? call.in(0).t() : call.in(0);
  const at::Tensor b = call.integer("transB", 0) != 0 ? call.in(1).t() : call.in(1);
  const double alpha = call.real("alpha", 1);
  const double beta = call.real("beta", 1);
  at::Tensor y = at::matmul(a, b);
  if (alpha != 1) y = a.is_floating_point() ? y * alpha : (y * alpha).to(a.scalar_type());
  if (!call.has_in(2)) return {y};
  at::Tensor c = call.in(2);
  if (beta != 1) c = c.is_floating_point() ? c * beta : (c * beta).to(c.scalar_type());
  // Also before version 7, a vector along the rows of y must have shape [rows, 1].
  return {y + c};
}

Tensors einsum(const Call& call) {
  std::string equation = call.text("equation", "");
  std::erase(equation, ' ');
  return {at::einsum(equation, call.inputs)};
}

namespace {

/// Returns coordinates of the samples for element `k` of each window along one axis, of size
/// `size`, as grid_sample expects them: [.., oh, ow] between -1 and 1.
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
  if (image.size() != 2)
    call.unsupported("images with " + std::to_string(image.size()) + " axes are not supported");
  const Ints pads = call.integers("pads", Ints(4, 0));
  const Ints padded{image[0] + pads[0] + pads[2], image[1] + pads[1] + pads[3]};
  const at::Tensor y = at::col2im(call.in(0), padded, block, call.integers("dilations", Ints(2, 1)),
                                  Ints(2, 0), call.integers("strides", Ints(2, 1)));
  return {y.narrow(2, pads[0], image[0]).narrow(3, pads[1], image[1])};
}

/// A channel is present everywhere if any of its columns is.
Tensors added_columns(const Operator& /*op*/, const Call& call, const Tensors& outputs) {
  const at::Tensor& p = call.presence(0);
  const int64_t channels = outputs[0].size(1);
  const at::Tensor there = p.reshape({p.size(0), channels, -1}).any(-1);
  return {there.unsqueeze(-1).unsqueeze(-1).expand(outputs[0].sizes())};
}

/// @source Dai et al., "Deformable Convolutional Networks", 2017; the layout of ONNX's DeformConv
Tensors deform_conv(const Call& call) {
  const at::Tensor& x = call.in(0);
  const at::Tensor& w = call.in(1);
  if (x.dim() != 4)
    call.unsupported("images with " + std::to_string(x.dim() - 2) + " axes are not supported");
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
