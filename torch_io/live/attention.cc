// MultiheadAttention: embed_dim, num_heads, kdim, vdim.
//
// Its forward wants the inputs to be embed_dim wide, takes embed_dim / num_heads for the size of a
// head, and scales scores by that size. Hence complete heads are removed, with as many inputs:
// heads * head_dim == embed_dim stays true. What out_proj computes may be of any width.

#include <torch/nn/modules/activation.h>

#include <array>
#include <string>

#include "parsimony/torch_io/errors.h"
#include "parsimony/torch_io/live/layer_kind_impl.h"

namespace parsimony::torch_io::live {
namespace {

using Attention = torch::nn::MultiheadAttentionImpl;
using Rows = std::vector<int64_t>;

UnsupportedError refused(const LayerEdit& edit, std::string_view why) {
  return errors::not_possible(edit.path, "MultiheadAttention", why);
}

/// The rows that stay of the projections of queries, keys and values.
std::array<Rows, 3> projections(const Attention& layer, const LayerEdit& edit) {
  if (!layer._qkv_same_embed_dim) {
    return {edit.journal->kept(layer.q_proj_weight, 0).keep,
            edit.journal->kept(layer.k_proj_weight, 0).keep,
            edit.journal->kept(layer.v_proj_weight, 0).keep};
  }
  std::array<Rows, 3> rows;
  const int64_t size = layer.options.embed_dim();
  for (const int64_t row : edit.journal->kept(layer.in_proj_weight, 0).keep) {
    rows[row / size].push_back(row % size);
  }
  return rows;
}

/// The number of kept heads. @throws UnsupportedError if one is kept partly
int64_t whole_heads(const Rows& rows, int64_t head_dim, const LayerEdit& edit) {
  const size_t size = head_dim;
  for (size_t i = 0; i < rows.size(); i += size) {
    const size_t last = i + size - 1;
    if (rows[i] % head_dim == 0 && last < rows.size() && rows[last] == rows[i] + head_dim - 1) {
      continue;
    }
    throw refused(
        edit,
        "a head is kept or removed as a whole, since its forward scales by the head size; head " +
            std::to_string(rows[i] / head_dim) + " would be kept in part");
  }
  return static_cast<int64_t>(rows.size()) / head_dim;
}

void require_biases(const Attention& layer, const LayerEdit& edit, int64_t width) {
  edit.require("in_proj_bias", layer.in_proj_bias, {3 * width});
  edit.require("bias_k", layer.bias_k, {1, 1, width});
  edit.require("bias_v", layer.bias_v, {1, 1, width});
}

void follow_attention(Attention& layer, const LayerEdit& edit) {
  const auto [queries, keys, values] = projections(layer, edit);
  if (queries != keys || queries != values) {
    throw refused(edit, "queries, keys and values must keep the same heads");
  }
  const int64_t heads = whole_heads(queries, layer.head_dim, edit);
  const int64_t width = heads * layer.head_dim;
  const bool same = layer._qkv_same_embed_dim;
  const int64_t embed = same ? layer.in_proj_weight.size(1) : layer.q_proj_weight.size(1);
  if (embed != width) {
    throw refused(edit, "its forward wants as many inputs as heads * head_dim; found " +
                            std::to_string(embed) + " inputs, " + std::to_string(heads) +
                            " heads of " + std::to_string(layer.head_dim));
  }
  if (layer.out_proj->weight.size(1) != width) {
    throw refused(edit, "out_proj must read what the heads give; found " +
                            std::to_string(layer.out_proj->weight.size(1)) + " inputs, " +
                            std::to_string(width) + " values");
  }
  const int64_t kdim = same ? embed : layer.k_proj_weight.size(1);
  const int64_t vdim = same ? embed : layer.v_proj_weight.size(1);
  require_biases(layer, edit, width);
  edit.agrees("num_heads", heads);
  layer.options.embed_dim(embed).num_heads(heads).kdim(kdim).vdim(vdim);
}

}  // namespace

std::vector<LayerKind> attention_kinds() {
  return {layer_kind<Attention, follow_attention>("MultiheadAttention", {"num_heads"})};
}

}  // namespace parsimony::torch_io::live
