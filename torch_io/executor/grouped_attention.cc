// Attention whose cache has room for keys to come. @source onnxruntime, ContribOperators.md:
// GroupQueryAttention
#include "parsimony/torch_io/executor/attention_impl.h"
#include "parsimony/torch_io/executor/kernels_impl.h"

namespace parsimony::executor {
namespace {

/// Where the new keys of each sequence go.
struct Places {
  at::Tensor before;   ///< [n 1] keys that are there already
  at::Tensor queries;  ///< [n s] the place of each query, which is that of its own key
  int64_t total = 0;   ///< keys of the longest sequence, the new ones included
};

/// A first prompt fills an empty cache, whatever was in it.
Places places_of(const Call& call, int64_t batch, int64_t length) {
  const int64_t total = call.ints_in(6).at(0);
  const at::Tensor lengths = call.in(5).to(at::kLong).reshape({-1, 1}).expand({batch, 1}) + 1;
  const at::Tensor before =
      total == length ? at::zeros_like(lengths) : (lengths - length).clamp_min(0);
  TORCH_CHECK(before.max().item<int64_t>() + length <= total, "more keys than ", total);
  return {before, before + at::arange(length), total};
}

/// [n h t d]: what was there, then what is new. Zero behind it.
at::Tensor cached(const at::Tensor& past, const at::Tensor& now, const Places& places) {
  const int64_t room = past.defined() ? past.size(2) : 0;
  Ints dims = now.sizes().vec();
  dims[2] = std::max(room, places.total);
  at::Tensor all = at::zeros(dims, now.options());
  for (int64_t n = 0; n < dims[0]; ++n) {
    const auto before = places.before[n].item<int64_t>();
    TORCH_CHECK(before <= room, "more keys than the cache of ", room, " has");
    if (before > 0) all[n].narrow(1, 0, before).copy_(past[n].narrow(1, 0, before));
    all[n].narrow(1, before, now.size(2)).copy_(now[n]);
  }
  return all;
}

/// Which keys a query sees: its own, those before it, and of these the nearest.
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
  refuse(call, call.outputs() > 3, "returns its scores");
  refuse(call, call.has_in(12) || call.has_in(13), "has a cache of integers");
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

}  // namespace parsimony::executor
