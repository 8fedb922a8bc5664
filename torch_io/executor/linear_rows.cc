#include "parsimony/torch_io/executor/linear_rows.h"

#include <ATen/ATen.h>

#include "parsimony/graph/operators/schema.h"
#include "parsimony/torch_io/executor/call_impl.h"
#include "parsimony/torch_io/executor/window_impl.h"

namespace parsimony {

using executor::Call;
using executor::index;
using executor::Ints;
using executor::position;
using executor::Window;

namespace {

/// x [n c ..s] -> [n, ..t, c, ..k]
at::Tensor windows(const Call& call) {
  const Window window = executor::window_of(call, call.in(1).sizes().slice(2).vec());
  at::Tensor x = executor::padded_for(window, call.in(0), 0);
  const auto rank = index(window.kernel.size());
  for (int64_t i = 0; i < rank; ++i) {
    const int64_t dilation = window.dilation[i];
    const int64_t extent = (window.kernel[i] - 1) * dilation + 1;
    x = x.unfold(2 + i, extent, window.stride[i]).slice(-1, 0, extent, dilation);
  }
  Ints order = {0};
  for (int64_t i = 0; i < rank; ++i) order.push_back(2 + i);
  order.push_back(1);
  for (int64_t i = 0; i < rank; ++i) order.push_back(2 + rank + i);
  return x.permute(order);
}

}  // namespace

int64_t groups_of(const Node& node) {
  const bool convolves = schema_of(node).linear.kind == LinearKind::kConvolution;
  return convolves ? Call(node, {}).integer("group", 1) : 1;
}

at::Tensor linear_rows(const Node& node, const at::Tensor& x, const at::Tensor& weight) {
  const Call call(node, {x, weight});
  const Linear& linear = schema_of(node).linear;
  const bool product = linear.kind == LinearKind::kMatrixProduct;
  if (!linear.plain || (!product && linear.kind != LinearKind::kConvolution)) {
    call.unsupported("it is no linear layer");
  }
  if (!product) {
    const int64_t groups = groups_of(node);
    const int64_t in = weight.numel() / weight.size(0);
    return windows(call).reshape({-1, groups, in}).transpose(0, 1);
  }
  if (call.integer("transA", 0) != 0) return x.t().unsqueeze(0);
  return x.reshape({1, -1, x.size(-1)});
}

at::Tensor answer_rows(const at::Tensor& answer, int64_t axis, int64_t groups) {
  const at::Tensor last = answer.movedim(axis, -1);
  return last.reshape({-1, groups, last.size(-1) / groups}).transpose(0, 1);
}

}  // namespace parsimony
