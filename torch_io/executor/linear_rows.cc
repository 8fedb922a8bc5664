#include "parsimony/torch_io/executor/linear_rows.h"

#include <ATen/ATen.h>

#include "parsimony/graph/operators/schema.h"
#include "parsimony/torch_io/executor/call_impl.h"
#include "parsimony/torch_io/executor/window_impl.h"

namespace parsimony {

using executor::Call;

int64_t groups_of(const Node& node) {
  const bool convolves = schema_of(node).linear.kind == LinearKind::kConvolution;
  return convolves ? Call(node, {}).integer("group", 1) : 1;
}

at::Tensor linear_rows(const Node& node, const at::Tensor& x, const at::Tensor& weight) {
  const Linear& linear = schema_of(node).linear;
  if (linear.plain && linear.kind == LinearKind::kMatrixProduct) {
    return torch_io::matrix_operand(node, x, 0);
  }
  if (linear.plain && linear.kind == LinearKind::kConvolution) {
    return torch_io::conv_operand(node, x, weight.sizes().vec());
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

}  // namespace

at::Tensor conv_operand(const Node& node, const at::Tensor& x, const Shape& kernel) {
  const Call call(node, {x});
  const Window window = executor::window_of(call, Ints(kernel.begin() + 2, kernel.end()));
  at::Tensor windows = executor::padded_for(window, x, 0);
  const auto spatial = static_cast<int64_t>(window.kernel.size());
  for (int64_t d = 0; d < spatial; ++d) {
    const size_t i = d;
    const int64_t extent = (window.kernel[i] - 1) * window.dilation[i] + 1;
    windows = windows.unfold(2 + d, extent, window.stride[i]);
    windows = windows.slice(-1, 0, extent, window.dilation[i]);
  }
  return rows_of(windows, call.integer("group", 1), spatial);
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
