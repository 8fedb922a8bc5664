// Attention as one operator, without a cache. @source onnxruntime, ContribOperators.md; ONNX
// operators Attention and RotaryEmbedding, opset 23
#include <cmath>

#include "parsimony/torch_io/executor/kernels_impl.h"

namespace parsimony::executor {
namespace {

/// Queries, keys and values as [n h l d].
struct Parts {
  at::Tensor q;
  at::Tensor k;
  at::Tensor v;
};

at::Tensor by_heads(const at::Tensor& x, int64_t heads) {
  if (x.dim() == 4) return x;
  return x.reshape({x.size(0), x.size(1), heads, -1}).transpose(1, 2);
}

at::Tensor joined(const at::Tensor& y) {
  const at::Tensor rows = y.transpose(1, 2);
  return rows.reshape({rows.size(0), rows.size(1), -1});
}

double scale_of(const Call& call, int64_t head_size) {
  const double given = call.real("scale", 0);
  return given != 0 ? given : 1 / std::sqrt(static_cast<double>(head_size));
}

/// Softmax of the scores over the values; fewer heads of keys serve several of queries.
at::Tensor attended(const Call& call, Parts p, const at::Tensor& bias, bool causal) {
  const int64_t each = p.q.size(1) / p.k.size(1);
  if (each > 1) {
    p.k = p.k.repeat_interleave(each, 1);
    p.v = p.v.repeat_interleave(each, 1);
  }
  at::Tensor scores = at::matmul(p.q, p.k.transpose(-1, -2)) * scale_of(call, p.q.size(-1));
  if (bias.defined()) {
    scores = bias.scalar_type() == at::kBool ? scores.masked_fill(bias.logical_not(), -1e30)
                                             : scores + bias;
  }
  if (causal) {
    const at::Tensor later = at::ones({scores.size(-2), scores.size(-1)}, at::kBool).triu(1);
    scores = scores.masked_fill(later.to(scores.device()), -1e30);
  }
  return at::matmul(at::softmax(scores, -1), p.v);
}

void refuse(const Call& call, bool found, std::string_view what) {
  if (found) call.unsupported(what);
}

/// One matrix of bias for q, k and v in a row.
at::Tensor third(const at::Tensor& bias, int64_t which) {
  const int64_t size = bias.size(0) / 3;
  return bias.narrow(0, which * size, size);
}

/// Kernels run on presences tell which heads' values are there: a sum over keys of what is.
at::Tensor summed_values(const at::Tensor& v, int64_t queries, int64_t heads) {
  at::Tensor any = by_heads(v, heads).amax(2, true);
  return any.expand({any.size(0), any.size(1), queries, any.size(3)});
}

int64_t heads_of(const Call& call, const char* name) { return call.integer(name, 1); }

}  // namespace

Tensors attention(const Call& call) {
  refuse(call, call.has_in(4) || call.has_in(5) || call.outputs() > 1, "has a cache");
  refuse(call, call.real("softcap", 0) != 0, "caps its scores");
  const bool joint = call.in(0).dim() == 3;
  const int64_t q_heads = joint ? heads_of(call, "q_num_heads") : call.in(0).size(1);
  const int64_t kv_heads = joint ? heads_of(call, "kv_num_heads") : call.in(1).size(1);
  const Parts parts{by_heads(call.in(0), q_heads), by_heads(call.in(1), kv_heads),
                    by_heads(call.in(2), kv_heads)};
  const at::Tensor y = attended(call, parts, call.in(3), call.integer("is_causal", 0) != 0);
  return {joint ? joined(y) : y};
}

Tensors multi_head_attention(const Call& call) {
  refuse(call, call.in(0).dim() != 3 || !call.has_in(1) || call.in(1).dim() == 5, "is packed");
  refuse(call, call.has_in(4) || call.has_in(6) || call.outputs() > 1, "has a mask or a cache");
  Tensors x{call.in(0), call.in(1), call.in(2)};
  for (size_t i = 0; call.has_in(3) && i < 3; ++i) x[i] = x[i] + third(call.in(3), index(i));
  const int64_t heads = heads_of(call, "num_heads");
  const Parts parts{by_heads(x[0], heads), by_heads(x[1], heads), by_heads(x[2], heads)};
  return {joined(attended(call, parts, call.in(5), call.integer("unidirectional", 0) != 0))};
}

Tensors packed_attention(const Call& call) {
  refuse(call, call.has_in(3) || call.has_in(4) || call.outputs() > 1, "has a mask or a cache");
  refuse(call, call.integer("do_rotary", 0) != 0, "rotates");
  at::Tensor all = at::matmul(call.in(0), call.in(1));
  if (call.has_in(2)) all = all + call.in(2);
  Ints sizes = call.integers("qkv_hidden_sizes");
  if (sizes.empty()) sizes.assign(3, all.size(2) / 3);
  const int64_t heads = heads_of(call, "num_heads");
  const Parts parts{by_heads(all.narrow(2, 0, sizes[0]), heads),
                    by_heads(all.narrow(2, sizes[0], sizes[1]), heads),
                    by_heads(all.narrow(2, sizes[0] + sizes[1], sizes[2]), heads)};
  return {joined(attended(call, parts, call.in(5), call.integer("unidirectional", 0) != 0))};
}

Tensors group_query_attention(const Call& call) {
  refuse(call, !call.has_in(1) || call.has_in(3) || call.outputs() > 1, "is packed or has a cache");
  refuse(call, call.integer("do_rotary", 0) != 0 || call.has_in(10), "rotates or has a bias");
  refuse(call, call.real("softcap", 0) != 0 || call.integer("local_window_size", -1) > 0,
         "looks at some keys only");
  const int64_t kv_heads = heads_of(call, "kv_num_heads");
  const Parts parts{by_heads(call.in(0), heads_of(call, "num_heads")),
                    by_heads(call.in(1), kv_heads), by_heads(call.in(2), kv_heads)};
  return {joined(attended(call, parts, {}, /*causal=*/true))};
}

/// A head's result is there where its values are.
Tensors attention_presence(const Operator& op, const Call& call, const Tensors& outputs) {
  const at::Tensor& y = outputs.front();
  if (op.op == "Attention" && !op.domain.empty()) {
    const at::Tensor w = call.presence_numbers(1).amax(0);
    Ints sizes = call.integers("qkv_hidden_sizes");
    if (sizes.empty()) sizes.assign(3, w.size(0) / 3);
    return {(w.narrow(0, sizes[0] + sizes[1], sizes[2]) > 0.5).expand(y.sizes())};
  }
  const bool joint = y.dim() == 3;
  const at::Tensor v = call.presence_numbers(2);
  const bool one_count = op.op == "MultiHeadAttention";
  const int64_t kv_heads =
      joint ? heads_of(call, one_count ? "num_heads" : "kv_num_heads") : v.size(1);
  const int64_t q_heads =
      joint ? heads_of(call, op.domain.empty() ? "q_num_heads" : "num_heads") : y.size(1);
  const at::Tensor there = summed_values(v, call.in(0).size(joint ? 1 : 2), kv_heads)
                               .repeat_interleave(q_heads / kv_heads, 1);
  return {(joint ? joined(there) : there) > 0.5};
}

/// Pairs (a, b) of a head become (a cos - b sin, a sin + b cos).
Tensors rotary_embedding(const Call& call) {
  const bool is_onnx = call.node.domain.empty();
  const size_t table = is_onnx ? 1 : 2;
  const size_t positions = is_onnx ? 3 : 1;
  const int64_t rotated = call.integer("rotary_embedding_dim", 0);
  at::Tensor cos = call.in(table);
  at::Tensor sin = call.in(table + 1);
  const int64_t half = cos.size(-1);
  const bool joint = call.in(0).dim() == 3;
  const at::Tensor& x = call.in(0);
  const at::Tensor heads = joint ? by_heads(x, x.size(2) / (2 * half)) : x;
  refuse(call, rotated != 0 && rotated != heads.size(-1), "rotates a part of each head");
  if (call.has_in(positions)) {
    at::Tensor at = call.in(positions).to(at::kLong);
    if (at.numel() == 1) at = at::arange(heads.size(2), at.options()) + at.reshape({1});
    cos = cos.index({at});
    sin = sin.index({at});
  }
  if (cos.dim() == 3) {
    cos = cos.unsqueeze(1);
    sin = sin.unsqueeze(1);
  }
  const bool neighbours = call.integer("interleaved", 0) != 0;
  const at::Tensor pairs = neighbours ? heads.unflatten(-1, {half, 2}).transpose(-1, -2)
                                      : heads.unflatten(-1, {2, half});
  const at::Tensor a = pairs.select(-2, 0);
  const at::Tensor b = pairs.select(-2, 1);
  const at::Tensor turned = at::stack({a * cos - b * sin, a * sin + b * cos}, -2);
  const at::Tensor y = (neighbours ? turned.transpose(-1, -2) : turned).flatten(-2);
  return {joint ? joined(y) : y};
}

}  // namespace parsimony::executor
