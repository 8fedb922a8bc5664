// Causal attention: each token attends to itself and to earlier ones. Traces contain no batch size
// or sequence length.
#pragma once

#include <ATen/ATen.h>

#include <limits>

namespace examples {

/// [n, length, heads · width] -> [n, heads, length, width]
inline at::Tensor split_heads(const at::Tensor& x, int64_t heads) {
  return x.unflatten(-1, {heads, -1}).transpose(1, 2);
}

/// Queries, keys and values [n, heads, length, width] -> [n, length, heads · width]
inline at::Tensor attend(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                         double scale) {
  const at::Tensor scores = at::matmul(q * scale, k.transpose(-2, -1));
  const at::Tensor never = at::full_like(scores, -std::numeric_limits<double>::infinity());
  return at::matmul((scores + never.triu(1)).softmax(-1), v).transpose(1, 2).flatten(2);
}

/// The positions 0, 1, … of the tokens, in the shape of the indices [n, length].
inline at::Tensor places(const at::Tensor& ids) { return at::ones_like(ids).cumsum(1) - 1; }

}  // namespace examples
