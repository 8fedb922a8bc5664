// Rotary positions. @source onnxruntime, ContribOperators.md; ONNX operator RotaryEmbedding, opset
// 23
#include "parsimony/torch_io/executor/attention_impl.h"
#include "parsimony/torch_io/executor/kernels_impl.h"

namespace parsimony::executor {

at::Tensor rotated(const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin,
                   bool neighbours) {
  const int64_t half = cos.size(-1);
  const int64_t rest = x.size(-1) - 2 * half;
  TORCH_CHECK(rest >= 0, "tables of ", half, " pairs for heads of ", x.size(-1));
  const at::Tensor turning = x.narrow(-1, 0, 2 * half);
  const at::Tensor pairs = neighbours ? turning.unflatten(-1, {half, 2}).transpose(-1, -2)
                                      : turning.unflatten(-1, {2, half});
  const at::Tensor a = pairs.select(-2, 0);
  const at::Tensor b = pairs.select(-2, 1);
  const at::Tensor turned = at::stack({a * cos - b * sin, a * sin + b * cos}, -2);
  const at::Tensor y = (neighbours ? turned.transpose(-1, -2) : turned).flatten(-2);
  return rest == 0 ? y : at::cat({y, x.narrow(-1, 2 * half, rest)}, -1);
}

Tensors rotary_embedding(const Call& call) {
  const bool is_onnx = call.node.domain.empty();
  const size_t table = is_onnx ? 1 : 2;
  const size_t positions = is_onnx ? 3 : 1;
  at::Tensor cos = call.in(table);
  at::Tensor sin = call.in(table + 1);
  const at::Tensor& x = call.in(0);
  const bool joint = x.dim() == 3;
  const int64_t given = call.integer("num_heads", 0);
  const int64_t heads = given > 0 ? given : x.size(-1) / (2 * cos.size(-1));
  const at::Tensor apart = joint ? by_heads(x, heads) : x;
  if (call.has_in(positions)) {
    at::Tensor at = call.in(positions).to(at::kLong);
    if (at.numel() == 1) at = at::arange(apart.size(2), at.options()) + at.reshape({1});
    cos = cos.index({at});
    sin = sin.index({at});
  }
  if (cos.dim() == 3) {
    cos = cos.unsqueeze(1);
    sin = sin.unsqueeze(1);
  }
  const at::Tensor y = rotated(apart, cos, sin, call.integer("interleaved", 0) != 0);
  return {joint ? joined(y) : y};
}

}  // namespace parsimony::executor
