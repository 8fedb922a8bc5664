// Helpers of the attention operators. Sizes: n batch, h heads, s queries, t keys, d head
// dimensions.
#pragma once

#include "parsimony/torch_io/executor/call_impl.h"

namespace parsimony::executor {

/// Queries, keys and values as [n h l d].
struct Parts {
  at::Tensor q;
  at::Tensor k;
  at::Tensor v;
};

/// What is applied between the scores and their softmax. Tensors broadcast to [n h s t].
struct Looks {
  at::Tensor bias;
  at::Tensor visible;     ///< boolean; undefined: every key is visible
  double hidden = -1e30;  ///< added to the scores of invisible keys
  double cap = 0;         ///< scores become cap tanh(score / cap)
  bool caps_bias = false;
  at::Tensor sink;  ///< [h]: the score of an additional key without a value
};

/// [n l (h d)] or [n h l d] as [n h l d].
at::Tensor by_heads(const at::Tensor& x, int64_t heads);
/// [n h l d] as [n l (h d)].
at::Tensor joined(const at::Tensor& y);

/// Scaled dot-product attention; with fewer key heads, each serves several query heads.
at::Tensor attended(const Call& call, const Parts& parts, const Looks& looks);

/// The causal mask [s t], if the first query follows `before` keys.
at::Tensor none_later(int64_t queries, int64_t keys, int64_t before);

/// Dimensions (a, b) in pairs become (a cos - b sin, a sin + b cos): halves of a head, or
/// neighbours. The tables are [.. l pairs]; dimensions beyond their pairs are not rotated.
at::Tensor rotated(const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin,
                   bool neighbours);

/// @throws UnsupportedError if found
void refuse(const Call& call, bool found, std::string_view what);

}  // namespace parsimony::executor
