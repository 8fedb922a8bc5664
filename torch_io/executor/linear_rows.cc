#include "parsimony/torch_io/executor/linear_rows.h"

#include <ATen/ATen.h>

#include "parsimony/graph/operators/schema.h"
#include "parsimony/torch_io/executor/call_impl.h"
#include "parsimony/torch_io/executor/window_impl.h"

namespace parsimony {

using executor::Call;

at::Tensor linear_rows(const Node& node, const at::Tensor& x, const at::Tensor& weight,
                       const std::vector<int64_t>& steps) {
  const Linear& linear = schema_of(node).linear;
  if (linear.plain && linear.kind == LinearKind::kMatrixProduct) {
    return torch_io::matrix_operand(node, x, 0);
  }
  if (linear.plain && linear.kind == LinearKind::kConvolution) {
    return torch_io::conv_operand(node, x, weight.sizes().vec(), steps);
  }
  if (linear.plain && linear.kind == LinearKind::kTransposedConvolution) {
    return torch_io::spread_operand(node, x, weight.sizes().vec(), steps);
  }
  Call(node, {}).unsupported("it is not a linear layer");
}

at::Tensor answer_rows(const at::Tensor& answer, int64_t axis, int64_t groups) {
  const at::Tensor last = answer.movedim(axis, -1);
  return last.reshape({-1, groups, last.size(-1) / groups}).transpose(0, 1);
}

}  // namespace parsimony

namespace parsimony::torch_io {

using executor::Call;
using executor::Ints;
using executor::Window;

namespace {

/// [n, (g i), ..p, ..k] -> [g, n·p, i·k]
at::Tensor rows_of(const at::Tensor& windows, int64_t groups, int64_t spatial) {
  const int64_t n = windows.size(0);
  const int64_t channels = windows.size(1) / groups;
  Ints split = {n, groups, channels};
  for (int64_t d = 2; d < windows.dim(); ++d) split.push_back(windows.size(d));
  Ints order = {1, 0};
  for (int64_t d = 0; d < spatial; ++d) order.push_back(3 + d);
  order.push_back(2);
  for (int64_t d = 3 + spatial; d < static_cast<int64_t>(split.size()); ++d) order.push_back(d);
  int64_t columns = channels;
  for (int64_t d = 2 + spatial; d < windows.dim(); ++d) columns *= windows.size(d);
  return windows.reshape(split).permute(order).reshape({groups, -1, columns});
}

/// [n (g i) ..p ..k] of x with its padding.
at::Tensor windows_of(at::Tensor x, const Window& window, const Ints& steps) {
  const auto spatial = static_cast<int64_t>(window.kernel.size());
  for (int64_t d = 0; d < spatial; ++d) {
    const size_t i = d;
    const int64_t extent = (window.kernel[i] - 1) * window.dilation[i] + 1;
    x = x.unfold(2 + d, extent, window.stride[i] * (steps.empty() ? 1 : steps[i]));
    x = x.slice(-1, 0, extent, window.dilation[i]);
  }
  return x;
}

/// x with zeros between its elements.
at::Tensor spread(const at::Tensor& x, const Ints& strides) {
  Ints sizes = x.sizes().vec();
  for (size_t i = 0; i < strides.size(); ++i) sizes[i + 2] = (sizes[i + 2] - 1) * strides[i] + 1;
  at::Tensor wide = at::zeros(sizes, x.options());
  at::Tensor places = wide;
  for (size_t i = 0; i < strides.size(); ++i) {
    places = places.slice(static_cast<int64_t>(i) + 2, 0, sizes[i + 2], strides[i]);
  }
  places.copy_(x);
  return wide;
}

}  // namespace

at::Tensor conv_operand(const Node& node, const at::Tensor& x, const Shape& kernel,
                        const std::vector<int64_t>& steps) {
  const Call call(node, {x});
  const Window window = executor::window_of(call, Ints(kernel.begin() + 2, kernel.end()));
  return rows_of(windows_of(executor::padded_for(window, x, 0), window, steps),
                 call.integer("group", 1), std::ssize(window.kernel));
}

at::Tensor spread_operand(const Node& node, const at::Tensor& x, const Shape& kernel,
                          const std::vector<int64_t>& steps) {
  const Call call(node, {x});
  Window window = executor::window_of(call, Ints(kernel.begin() + 2, kernel.end()));
  const at::Tensor wide = spread(x, window.stride);
  const Ints beyond = call.integers("output_padding", Ints(window.kernel.size(), 0));
  Ints reversed;
  for (size_t i = 0; i < window.kernel.size(); ++i) {
    const int64_t reach = (window.kernel[i] - 1) * window.dilation[i];
    window.begin[i] = reach - window.begin[i];
    window.end[i] = reach - window.end[i] + beyond[i];
    window.stride[i] = 1;
    reversed.push_back(-1 - static_cast<int64_t>(i));
  }
  const at::Tensor windows = windows_of(executor::padded_for(window, wide, 0), window, steps);
  return rows_of(windows.flip(reversed), call.integer("group", 1), std::ssize(window.kernel));
}

at::Tensor conv_transpose_operand(const Node& node, const at::Tensor& x) {
  return rows_of(x, Call(node, {x}).integer("group", 1), x.dim() - 2);
}

at::Tensor matrix_operand(const Node& node, const at::Tensor& x, int input) {
  const Call call(node, {x});
  const bool turned = call.integer(input == 0 ? "transA" : "transB", 0) != 0;
  if (x.dim() == 1) return x.reshape({1, 1, -1});
  // As a first operand the data has its contracted axis last, as a second one last but one.
  const at::Tensor rows = turned == (input == 0) ? x.transpose(-1, -2) : x;
  return rows.reshape({1, -1, rows.size(-1)});
}

}  // namespace parsimony::torch_io
