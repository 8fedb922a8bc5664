// Attention as one operator. @source onnxruntime, ContribOperators.md: Attention,
// MultiHeadAttention; ONNX operator Attention, opset 23
#include <cmath>

#include "parsimony/torch_io/executor/attention_impl.h"
#include "parsimony/torch_io/executor/kernels_impl.h"

namespace parsimony::executor {
namespace {

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

/// Queries, keys and values that stand beside each other for every head, [n l h 2 or 3 d], apart:
/// as [n l (h d)].
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

/// Which keys a mask of com.microsoft lets a query see: ends, ends and starts, or 0 and 1 of each.
at::Tensor unmasked(const Call& call, const at::Tensor& mask, const Parts& parts) {
  if (!mask.defined()) return {};
  const int64_t n = parts.q.size(0);
  const int64_t s = parts.q.size(2);
  const int64_t t = parts.k.size(2);
  const at::Tensor places = at::arange(t);
  switch (mask.dim()) {
    case 1: {
      refuse(call, mask.size(0) != n && mask.size(0) != 2 * n, "has a mask of packed sequences");
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

/// What the operators of com.microsoft have in common.
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

}  // namespace

at::Tensor by_heads(const at::Tensor& x, int64_t heads) {
  if (x.dim() == 4) return x;
  return x.reshape({x.size(0), x.size(1), heads, -1}).transpose(1, 2);
}

at::Tensor joined(const at::Tensor& y) { return y.transpose(1, 2).flatten(2); }

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

at::Tensor none_later(int64_t queries, int64_t keys, int64_t before) {
  return at::ones({queries, keys}, at::kBool).tril(before);
}

void refuse(const Call& call, bool found, std::string_view what) {
  if (found) call.unsupported(what);
}

Tensors attention(const Call& call) {
  refuse(call, call.outputs() > 3, "returns its scores");
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
  if (mask.defined() && mask.size(-1) < keys) {  // what it does not reach is hidden
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
  refuse(call, call.outputs() > 3, "returns its scores");
  refuse(call, call.has_in(8), "shares the memory of its cache");
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
  refuse(call, call.integer("do_rotary", 0) != 0, "rotates");
  refuse(call, call.has_in(6), "shares the memory of its cache");
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

/// A head's result is there where its values are, unless none asks for them; so is what the cache
/// keeps of it.
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
  if (!call.has_in(1) && call.in(0).dim() == 3) {  // grouped queries in one matrix: they come first
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
  // Of each head's dimensions, [n h 1 d].
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

}  // namespace parsimony::executor
