// Attention as one operator. @source onnxruntime, ContribOperators.md: Attention,
// MultiHeadAttention, GroupQueryAttention, RotaryEmbedding; ONNX operators Attention,
// RotaryEmbedding, opset 23. Sizes: n batch, h heads, s queries, t keys, d head dimensions.
#include <cmath>

#include "parsimony/torch_io/executor/operators_impl.h"

namespace parsimony::executor {
namespace {

/// Queries, keys and values as [n h l d].
struct Parts {
  at::Tensor q;
  at::Tensor k;
  at::Tensor v;
};

/// Changes to the scores before their softmax. Tensors broadcast to [n h s t].
struct Looks {
  at::Tensor bias;
  at::Tensor visible;     ///< boolean; undefined: every key is visible
  double hidden = -1e30;  ///< added to the scores of invisible keys
  double cap = 0;         ///< scores become cap tanh(score / cap)
  bool caps_bias = false;
  at::Tensor sink;  ///< [h]: the score of an additional key without a value
};

/// @throws UnsupportedError if found
void refuse(const Call& call, bool found, std::string_view what) {
  if (found) call.unsupported(what);
}

/// Reshapes [n l (h d)] or [n h l d] to [n h l d].
at::Tensor by_heads(const at::Tensor& x, int64_t heads) {
  if (x.dim() == 4) return x;
  return x.reshape({x.size(0), x.size(1), heads, -1}).transpose(1, 2);
}

/// Reshapes [n h l d] to [n l (h d)].
at::Tensor joined(const at::Tensor& y) { return y.transpose(1, 2).flatten(2); }

/// Returns the causal mask [s t], if the first query follows `before` keys.
at::Tensor none_later(int64_t queries, int64_t keys, int64_t before) {
  return at::ones({queries, keys}, at::kBool).tril(before);
}

double scale_of(const Call& call, int64_t head_size) {
  const double given = call.real("scale", 0);
  return given != 0 ? given : 1 / std::sqrt(static_cast<double>(head_size));
}

at::Tensor capped(const at::Tensor& scores, double cap) {
  return cap == 0 ? scores : at::tanh(scores / cap) * cap;
}

at::Tensor with_past(const Call& call, size_t i, const at::Tensor& now) {
  return call.has_in(i) ? at::cat({call.in(i), now}, 2) : now;
}

/// Separates queries, keys and values that are packed per head, [n l h 2 or 3 d], into [n l (h d)].
Tensors taken_apart(const Tensors& qkv) {
  Tensors parts = qkv;
  const auto take = [&](size_t from) {
    const Tensors chunks = parts[from].unbind(3);
    for (size_t i = 0; i < chunks.size(); ++i) parts[from + i] = chunks[i].flatten(2);
  };
  if (parts[0].dim() == 5) take(0);
  if (parts[1].defined() && parts[1].dim() == 5) take(1);
  return parts;
}

/// Returns the keys that a com.microsoft mask makes visible: ends, ends and starts, or 0 and 1 of
/// each.
at::Tensor unmasked(const Call& call, const at::Tensor& mask, const Parts& parts) {
  if (!mask.defined()) return {};
  const int64_t n = parts.q.size(0);
  const int64_t s = parts.q.size(2);
  const int64_t t = parts.k.size(2);
  const at::Tensor places = at::arange(t);
  switch (mask.dim()) {
    case 1: {
      refuse(call, mask.size(0) != n && mask.size(0) != 2 * n,
             "masks of packed sequences are not supported");
      const at::Tensor bounds = mask.reshape({-1, n, 1, 1, 1});
      const at::Tensor seen = places < bounds[0];
      return mask.size(0) == n ? seen : seen.logical_and(places >= bounds[1]);
    }
    case 2:
      if (mask.size(1) != t) return {};  // a dummy, [n 1]
      return (mask > 0).reshape({-1, 1, 1, t});
    case 3:
      return (mask > 0).unsqueeze(1);
    default:
      return (mask > 0).narrow(2, t - s, s).narrow(3, 0, t);
  }
}

/// Shared by the operators of com.microsoft.
Looks looks_of(const Call& call, const Parts& parts, size_t mask, size_t bias) {
  Looks looks;
  looks.bias = call.in(bias);
  looks.visible = unmasked(call, call.in(mask), parts);
  looks.hidden = call.real("mask_filter_value", -10000);
  if (call.integer("unidirectional", 0) == 0) return looks;
  const int64_t t = parts.k.size(2);
  const int64_t s = parts.q.size(2);
  looks.visible = both(looks.visible, none_later(s, t, t - s));
  return looks;
}

/// Scaled dot-product attention; with fewer key heads, each is used by several query heads.
at::Tensor attended(const Call& call, const Parts& parts, const Looks& looks) {
  const int64_t each = parts.q.size(1) / parts.k.size(1);
  const at::Tensor k = each > 1 ? parts.k.repeat_interleave(each, 1) : parts.k;
  const at::Tensor v = each > 1 ? parts.v.repeat_interleave(each, 1) : parts.v;
  at::Tensor scores = at::matmul(parts.q, k.transpose(-1, -2)) * scale_of(call, parts.q.size(-1));
  if (!looks.caps_bias) scores = capped(scores, looks.cap);
  if (looks.bias.defined()) scores = scores + looks.bias;
  if (looks.caps_bias) scores = capped(scores, looks.cap);
  if (looks.visible.defined()) {
    scores = scores + looks.visible.logical_not().to(scores.scalar_type()) * looks.hidden;
  }
  if (!looks.sink.defined()) return at::matmul(at::softmax(scores, -1), v);
  Ints dims = scores.sizes().vec();
  dims.back() = 1;
  const at::Tensor sink = looks.sink.to(scores.scalar_type()).reshape({1, -1, 1, 1}).expand(dims);
  const at::Tensor shares = at::softmax(at::cat({scores, sink}, -1), -1);
  return at::matmul(shares.narrow(-1, 0, scores.size(-1)), v);
}

/// Rotates pairs of dimensions (a, b), halves of a head or neighbours, to (a cos - b sin, a sin + b
/// cos). The tables are [.. l pairs]; dimensions beyond their pairs are not rotated.
at::Tensor rotated(const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin,
                   bool neighbours) {
  const int64_t half = cos.size(-1);
  const int64_t rest = x.size(-1) - 2 * half;
  TORCH_CHECK(rest >= 0, "rotary tables of ", half, " pairs do not fit heads of ", x.size(-1));
  const at::Tensor turning = x.narrow(-1, 0, 2 * half);
  const at::Tensor pairs = neighbours ? turning.unflatten(-1, {half, 2}).transpose(-1, -2)
                                      : turning.unflatten(-1, {2, half});
  const at::Tensor a = pairs.select(-2, 0);
  const at::Tensor b = pairs.select(-2, 1);
  const at::Tensor turned = at::stack({a * cos - b * sin, a * sin + b * cos}, -2);
  const at::Tensor y = (neighbours ? turned.transpose(-1, -2) : turned).flatten(-2);
  return rest == 0 ? y : at::cat({y, x.narrow(-1, 2 * half, rest)}, -1);
}

}  // namespace

Tensors attention(const Call& call) {
  refuse(call, call.outputs() > 3, "output of the scores is not supported");
  const bool joint = call.in(0).dim() == 3;
  const int64_t q_heads = joint ? call.integer("q_num_heads", 1) : call.in(0).size(1);
  const int64_t kv_heads = joint ? call.integer("kv_num_heads", 1) : call.in(1).size(1);
  const Parts parts{by_heads(call.in(0), q_heads),
                    with_past(call, 4, by_heads(call.in(1), kv_heads)),
                    with_past(call, 5, by_heads(call.in(2), kv_heads))};
  Looks looks;
  looks.cap = call.real("softcap", 0);
  looks.caps_bias = true;
  const int64_t keys = parts.k.size(2);
  at::Tensor mask = call.in(3);
  const bool chooses = mask.defined() && mask.scalar_type() == at::kBool;
  if (mask.defined() && mask.size(-1) < keys) {  // keys beyond it are hidden
    mask = at::constant_pad_nd(mask, {0, keys - mask.size(-1)}, chooses ? 0 : -1e30);
  }
  (chooses ? looks.visible : looks.bias) = mask;
  if (call.has_in(6)) {
    const at::Tensor lengths = call.in(6).reshape({-1, 1, 1, 1});
    looks.visible = both(looks.visible, at::arange(keys) < lengths);
  }
  if (call.integer("is_causal", 0) != 0) {
    const int64_t before = call.has_in(4) ? call.in(4).size(2) : 0;
    looks.visible = both(looks.visible, none_later(parts.q.size(2), keys, before));
  }
  const at::Tensor y = attended(call, parts, looks);
  return {joint ? joined(y) : y, parts.k, parts.v};
}

Tensors multi_head_attention(const Call& call) {
  refuse(call, call.outputs() > 3, "output of the scores is not supported");
  refuse(call, call.has_in(8), "a shared cache buffer is not supported");
  Tensors x = taken_apart({call.in(0), call.in(1), call.in(2)});
  if (call.has_in(3)) {
    const int64_t width = x[0].size(2);
    const Tensors bias =
        call.in(3).split_with_sizes({width, width, call.in(3).size(0) - 2 * width});
    for (size_t i = 0; i < 3; ++i) {
      if (x[i].dim() == 3) x[i] = x[i] + bias[i];
    }
  }
  const int64_t heads = call.integer("num_heads", 1);
  const Parts parts{by_heads(x[0], heads), with_past(call, 6, by_heads(x[1], heads)),
                    with_past(call, 7, by_heads(x[2], heads))};
  return {joined(attended(call, parts, looks_of(call, parts, 4, 5))), parts.k, parts.v};
}

Tensors packed_attention(const Call& call) {
  refuse(call, call.integer("do_rotary", 0) != 0, "do_rotary is not supported");
  refuse(call, call.has_in(6), "a shared cache buffer is not supported");
  at::Tensor all = at::matmul(call.in(0), call.in(1));
  if (call.has_in(2)) all = all + call.in(2);
  Ints sizes = call.integers("qkv_hidden_sizes");
  if (sizes.empty()) sizes.assign(3, all.size(2) / 3);
  const int64_t heads = call.integer("num_heads", 1);
  const Tensors x = all.split_with_sizes(sizes, 2);
  Parts parts{by_heads(x[0], heads), by_heads(x[1], heads), by_heads(x[2], heads)};
  if (call.has_in(4)) {
    parts.k = at::cat({call.in(4)[0], parts.k}, 2);
    parts.v = at::cat({call.in(4)[1], parts.v}, 2);
  }
  const at::Tensor y = joined(attended(call, parts, looks_of(call, parts, 3, 5)));
  if (call.outputs() < 2) return {y};
  return {y, at::stack({parts.k, parts.v})};
}

/// A head's result is present where its values are, unless all of its queries are absent; so are
/// its entries in the cache.
Tensors attention_presence(const Operator& op, const Call& call, const Tensors& outputs) {
  const at::Tensor& y = outputs.front();
  if (op.op == "Attention" && !op.domain.empty()) {
    const at::Tensor w = call.presence_numbers(1).amax(0) > 0.5;
    Ints sizes = call.integers("qkv_hidden_sizes");
    if (sizes.empty()) sizes.assign(3, w.size(0) / 3);
    const Tensors x = w.split_with_sizes(sizes);
    if (outputs.size() < 2 || !outputs[1].defined()) return {x[2].expand(y.sizes())};
    const int64_t heads = call.integer("num_heads", 1);
    const at::Tensor kept = at::stack({x[1], x[2]}).reshape({2, 1, heads, 1, -1});
    return {x[2].expand(y.sizes()), kept.expand(outputs[1].sizes())};
  }
  if (!call.has_in(1) && call.in(0).dim() == 3) {  // packed grouped queries: queries come first
    return {call.presence_numbers(0).narrow(2, 0, y.size(2)) > 0.5};
  }
  Tensors x;
  for (size_t i = 0; i < 3; ++i)
    x.push_back(call.has_in(i) ? call.presence_numbers(i) : at::Tensor());
  x = taken_apart(x);
  const bool joint = y.dim() == 3;
  const bool one_count = op.op == "MultiHeadAttention";
  const int64_t kv_heads =
      joint ? call.integer(one_count ? "num_heads" : "kv_num_heads", 1) : x[2].size(1);
  const int64_t q_heads =
      joint ? call.integer(op.domain.empty() ? "q_num_heads" : "num_heads", 1) : y.size(1);
  // Per dimension of each head, [n h 1 d].
  const auto any = [&](size_t i) { return by_heads(x[i], kv_heads).amax(2, true) > 0.5; };
  const at::Tensor asks = by_heads(x[0], q_heads).amax({2, 3}, true) > 0.5;
  const at::Tensor values = any(2).repeat_interleave(q_heads / kv_heads, 1).logical_and(asks);
  const at::Tensor there = values.expand({-1, -1, y.size(joint ? 1 : 2), -1});
  Tensors found{joint ? joined(there) : there};
  for (size_t i = 1; i < std::min<size_t>(outputs.size(), 3); ++i) {
    found.push_back(outputs[i].defined() ? any(i).expand(outputs[i].sizes()) : at::Tensor());
  }
  return found;
}

// Attention whose keys and values are summed into a matrix per head.

/// @source ONNX operator LinearAttention, opset 27
Tensors linear_attention(const Call& call) {
  const int64_t heads = call.integer("kv_num_heads", 1);
  const int64_t q_heads = call.integer("q_num_heads", heads);
  const at::Tensor q = by_heads(call.in(0), q_heads);
  const at::Tensor k = by_heads(call.in(1), heads);
  const at::Tensor v = by_heads(call.in(2), heads);
  const int64_t steps = k.size(2);
  const std::string rule = call.text("update_rule", "gated_delta");
  const double given = call.real("scale", 0);
  const double scale = given == 0 ? 1 / std::sqrt(static_cast<double>(q.size(3))) : given;
  at::Tensor state = call.has_in(3)
                         ? call.in(3)
                         : at::zeros({k.size(0), heads, k.size(3), v.size(3)}, k.options());
  // [n h t d]; d is 1 if a head has one number.
  const auto per_step = [&](size_t i) {
    const at::Tensor x = call.in(i).size(2) == 1 ? call.in(i).expand({-1, -1, heads}) : call.in(i);
    return by_heads(x, heads);
  };
  const at::Tensor decay = rule.starts_with("gated") ? at::exp(per_step(4)) : at::Tensor();
  const at::Tensor rate = rule.ends_with("delta") ? per_step(5) : at::Tensor();
  Tensors results;
  for (int64_t t = 0; t < steps; ++t) {
    const auto at_step = [&](const at::Tensor& x) { return x.narrow(2, t, 1); };
    if (decay.defined()) state = state * at_step(decay).transpose(2, 3);
    at::Tensor value = at_step(v);
    if (rate.defined()) value = at_step(rate) * (value - at::matmul(at_step(k), state));
    state = state + at::matmul(at_step(k).transpose(2, 3), value);
    const at::Tensor shared = state.repeat_interleave(q_heads / heads, 1);
    results.push_back(at::matmul(at_step(q), shared) * scale);
  }
  return {joined(at::cat(results, 2)), state};
}

Tensors linear_attention_presence(const Operator& /*op*/, const Call& call,
                                  const Tensors& outputs) {
  const int64_t heads = call.integer("kv_num_heads", 1);
  const int64_t q_heads = call.integer("q_num_heads", heads);
  const auto any = [&](size_t i) {
    return by_heads(call.presence_numbers(i), heads).amax(2, true) > 0.5;
  };
  const at::Tensor asks = by_heads(call.presence_numbers(0), q_heads).amax({2, 3}, true) > 0.5;
  const at::Tensor values = any(2).repeat_interleave(q_heads / heads, 1).logical_and(asks);
  Tensors found{joined(values.expand({-1, -1, outputs[0].size(1), -1}))};
  if (outputs.size() > 1) found.push_back(any(1).transpose(2, 3).logical_and(any(2)));
  return found;
}

// Attention whose cache has room for future keys.

namespace {

/// Positions of the new keys of each sequence.
struct Places {
  at::Tensor before;   ///< [n 1] number of existing keys
  at::Tensor queries;  ///< [n s] position of each query, equal to that of its own key
  int64_t total = 0;   ///< keys of the longest sequence, including new ones
};

/// Computes positions. A first prompt fills an empty cache, whatever its contents.
Places places_of(const Call& call, int64_t batch, int64_t length) {
  const int64_t total = call.ints_in(6).at(0);
  const at::Tensor lengths = call.in(5).to(at::kLong).reshape({-1, 1}).expand({batch, 1}) + 1;
  const at::Tensor before =
      total == length ? at::zeros_like(lengths) : (lengths - length).clamp_min(0);
  TORCH_CHECK(before.max().item<int64_t>() + length <= total, "more keys than ", total);
  return {before, before + at::arange(length), total};
}

/// Appends the new keys or values to the past ones, [n h t d], followed by zeros.
at::Tensor cached(const at::Tensor& past, const at::Tensor& now, const Places& places) {
  const int64_t room = past.defined() ? past.size(2) : 0;
  Ints dims = now.sizes().vec();
  dims[2] = std::max(room, places.total);
  at::Tensor all = at::zeros(dims, now.options());
  for (int64_t n = 0; n < dims[0]; ++n) {
    const auto before = places.before[n].item<int64_t>();
    TORCH_CHECK(before <= room, "more keys than fit into the cache of ", room);
    if (before > 0) all[n].narrow(1, 0, before).copy_(past[n].narrow(1, 0, before));
    all[n].narrow(1, before, now.size(2)).copy_(now[n]);
  }
  return all;
}

/// Returns the keys visible to a query: its own and earlier ones, within the local window.
at::Tensor visible(const Call& call, const Places& places) {
  const at::Tensor query = places.queries.unsqueeze(-1);  // [n s 1]
  const at::Tensor key = at::arange(places.total);
  at::Tensor sees = key <= query;
  const int64_t window = call.integer("local_window_size", -1);
  if (window > 0) sees = sees.logical_and(key > query - window);
  return sees.unsqueeze(1);
}

Parts parts_of(const Call& call) {
  const int64_t heads = call.integer("num_heads", 1);
  const int64_t kv_heads = call.integer("kv_num_heads", 1);
  Tensors x{call.in(0), call.in(1), call.in(2)};
  if (!call.has_in(1)) {  // in one matrix
    const int64_t size = x[0].size(2) / (heads + 2 * kv_heads);
    x = x[0].split_with_sizes({heads * size, kv_heads * size, kv_heads * size}, 2);
  }
  return {by_heads(x[0], heads), by_heads(x[1], kv_heads), by_heads(x[2], kv_heads)};
}

}  // namespace

Tensors group_query_attention(const Call& call) {
  refuse(call, call.outputs() > 3, "output of the scores is not supported");
  refuse(call, call.has_in(12) || call.has_in(13), "a quantised cache is not supported");
  Parts parts = parts_of(call);
  const Places places = places_of(call, parts.q.size(0), parts.q.size(2));
  if (call.integer("do_rotary", 0) != 0) {
    const at::Tensor at = call.has_in(9) ? call.in(9).to(at::kLong) : places.queries;
    const at::Tensor cos = call.in(7).index({at}).unsqueeze(1);
    const at::Tensor sin = call.in(8).index({at}).unsqueeze(1);
    const bool neighbours = call.integer("rotary_interleaved", 0) != 0;
    parts.q = rotated(parts.q, cos, sin, neighbours);
    parts.k = rotated(parts.k, cos, sin, neighbours);
  }
  const at::Tensor keys = cached(call.in(3), parts.k, places);
  const at::Tensor values = cached(call.in(4), parts.v, places);
  parts.k = keys.narrow(2, 0, places.total);
  parts.v = values.narrow(2, 0, places.total);
  Looks looks;
  looks.bias = call.in(10);
  looks.visible = visible(call, places);
  looks.cap = call.real("softcap", 0);
  if (call.has_in(11)) {
    looks.sink = call.in(11);
  } else if (call.integer("smooth_softmax", 0) > 0) {
    looks.sink = at::zeros({parts.q.size(1)}, parts.q.options());
  }
  return {joined(attended(call, parts, looks)), keys, values};
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
