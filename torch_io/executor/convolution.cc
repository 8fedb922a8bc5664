// Sums of products: convolutions, matrix products, Einsum.
#include <ATen/core/grad_mode.h>

#include <algorithm>

#include "parsimony/torch_io/executor/kernels_impl.h"
#include "parsimony/torch_io/executor/window_impl.h"

namespace parsimony::executor {
namespace {

struct OutputPadding {
  Ints begin;  ///< what is cut off the full result
  Ints end;    ///< negative: the result is longer than the full one
};

/// The full result has stride (in - 1) + extent elements along each axis.
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
    // SAME: as long as the input is, times the stride.
    const int64_t wanted =
        shape.empty() ? call.in(0).size(index(i) + 2) * strides[i] : shape[shape.size() - rank + i];
    const int64_t total = std::max<int64_t>(0, full[i] + extra[i] - wanted);
    padding.begin[i] = mode == "SAME_UPPER" ? total / 2 : total - total / 2;
    padding.end[i] = full[i] - wanted - padding.begin[i];
  }
  return padding;
}

/// Does each place of one sample stand alone?
bool is_pointwise(const at::Tensor& x, const at::Tensor& w, const Window& window, int64_t groups) {
  const auto are_ones = [](const auto& numbers) {
    return std::ranges::all_of(numbers, [](int64_t number) { return number == 1; });
  };
  return x.size(0) == 1 && groups == 1 && x.is_cpu() && x.scalar_type() == w.scalar_type() &&
         are_ones(window.kernel) && are_ones(window.stride);
}

/// A matrix product, whose gradients are far quicker than those of at::convolution, which copies
/// the input to columns for them.
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
  // Before version 7 a vector that is as long as y has rows may only be written so.
  return {y + c};
}

Tensors einsum(const Call& call) {
  std::string equation = call.text("equation", "");
  std::erase(equation, ' ');
  return {at::einsum(equation, call.inputs)};
}

}  // namespace parsimony::executor
