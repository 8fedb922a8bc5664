// A modern language model: RMSNorm, rotary positions, grouped queries, SwiGLU; the token embedding
// is tied to the output head. Source: Touvron et al., LLaMA: Open and Efficient Foundation Language
// Models, 2023; Ainslie et al., GQA: Training Generalized Multi-Query Transformer Models, 2023
#pragma once

#include <ATen/ATen.h>
#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>

#include <cmath>
#include <vector>

#include "causal_attention.h"

namespace examples {

struct LlamaOptions {
  int64_t vocabulary = 256;  ///< bytes
  int64_t embedding = 128;
  int64_t depth = 4;
  int64_t heads = 8;
  int64_t kv_heads = 4;  ///< keys and values; each serves heads / kv_heads queries
  int64_t head_dim = 16;
  int64_t mlp = 344;
};

struct RmsNormImpl : torch::nn::Module {
  explicit RmsNormImpl(int64_t width) { weight = register_parameter("weight", at::ones({width})); }

  at::Tensor forward(const at::Tensor& x) {
    constexpr double kEpsilon = 1e-5;
    return x * (x.square().mean({-1}, /*keepdim=*/true) + kEpsilon).rsqrt() * weight;
  }

  at::Tensor weight;
};
TORCH_MODULE(RmsNorm);

/// Token positions as angles.
/// @source Su et al., RoFormer: Enhanced Transformer with Rotary Position Embedding, 2021
struct Rotation {
  at::Tensor cos, sin;  ///< [n, 1, length, head_dim]

  Rotation(const at::Tensor& ids, const at::Tensor& frequencies) {
    const at::Tensor place = places(ids).to(at::kFloat).unsqueeze(-1);
    const at::Tensor angles = (place * frequencies).unsqueeze(1);
    cos = angles.cos();
    sin = angles.sin();
  }

  /// Rotates the two halves of each head's channels against each other.
  at::Tensor operator()(const at::Tensor& x) const {
    const std::vector<at::Tensor> halves = x.chunk(2, -1);
    return x * cos + at::cat({-halves[1], halves[0]}, -1) * sin;
  }
};

/// Attention with grouped queries. The number of heads follows from the weights.
struct GroupedAttentionImpl : torch::nn::Module {
  explicit GroupedAttentionImpl(const LlamaOptions& o)
      : q(torch::nn::LinearOptions(o.embedding, o.heads * o.head_dim).bias(false)),
        k(torch::nn::LinearOptions(o.embedding, o.kv_heads * o.head_dim).bias(false)),
        v(torch::nn::LinearOptions(o.embedding, o.kv_heads * o.head_dim).bias(false)),
        out(torch::nn::LinearOptions(o.heads * o.head_dim, o.embedding).bias(false)),
        shared(o.heads / o.kv_heads),
        scale(1 / std::sqrt(static_cast<double>(o.head_dim))) {
    register_module("q", q);
    register_module("k", k);
    register_module("v", v);
    register_module("out", out);
  }

  /// [n, length, embedding] -> the same
  at::Tensor forward(const at::Tensor& x, const Rotation& rotated) {
    const int64_t kv_heads = k->weight.size(0) / rotated.cos.size(-1);
    const at::Tensor queries = rotated(split_heads(q(x), kv_heads * shared));
    const at::Tensor keys = repeated(rotated(split_heads(k(x), kv_heads)));
    const at::Tensor values = repeated(split_heads(v(x), kv_heads));
    return out(attend(queries, keys, values, scale));
  }

  torch::nn::Linear q, k, v, out;
  int64_t shared;  ///< queries per key
  double scale;    ///< as trained; does not change when heads become narrower

 private:
  /// Repeats each head of keys or values for all of its queries.
  at::Tensor repeated(const at::Tensor& x) const {
    return x.unsqueeze(2).expand({-1, -1, shared, -1, -1}).flatten(1, 2);
  }
};
TORCH_MODULE(GroupedAttention);

/// down(silu(gate(x)) · up(x))
/// @source Shazeer, GLU Variants Improve Transformer, 2020
struct SwiGluImpl : torch::nn::Module {
  SwiGluImpl(int64_t embedding, int64_t mlp)
      : gate(torch::nn::LinearOptions(embedding, mlp).bias(false)),
        up(torch::nn::LinearOptions(embedding, mlp).bias(false)),
        down(torch::nn::LinearOptions(mlp, embedding).bias(false)) {
    register_module("gate", gate);
    register_module("up", up);
    register_module("down", down);
  }

  at::Tensor forward(const at::Tensor& x) { return down(at::silu(gate(x)) * up(x)); }

  torch::nn::Linear gate, up, down;
};
TORCH_MODULE(SwiGlu);

struct LlamaBlockImpl : torch::nn::Module {
  explicit LlamaBlockImpl(const LlamaOptions& o)
      : norm1(o.embedding), norm2(o.embedding), attention(o), mlp(o.embedding, o.mlp) {
    register_module("norm1", norm1);
    register_module("attention", attention);
    register_module("norm2", norm2);
    register_module("mlp", mlp);
  }

  at::Tensor forward(at::Tensor x, const Rotation& rotated) {
    x = x + attention(norm1(x), rotated);
    return x + mlp(norm2(x));
  }

  RmsNorm norm1, norm2;
  GroupedAttention attention;
  SwiGlu mlp;
};
TORCH_MODULE(LlamaBlock);

struct LlamaImpl : torch::nn::Module {
  explicit LlamaImpl(const LlamaOptions& o = {})
      : tokens(o.vocabulary, o.embedding), norm(o.embedding) {
    constexpr double kDeviation = 0.02;
    constexpr double kBase = 10'000;
    const at::NoGradGuard no_grad;
    tokens->weight.normal_(0, kDeviation);
    register_module("tokens", tokens);
    for (int64_t i = 0; i < o.depth; ++i) blocks->push_back(LlamaBlock(o));
    register_module("blocks", blocks);
    register_module("norm", norm);
    const at::Tensor half = at::arange(0, o.head_dim, 2) / static_cast<double>(o.head_dim);
    frequencies = register_buffer("frequencies", at::pow(kBase, -half).repeat({2}));
  }

  /// Indices [n, length] -> [n, length, vocabulary]: logits of the next token
  at::Tensor forward(const at::Tensor& ids) {
    const Rotation rotated(ids, frequencies);
    at::Tensor x = tokens(ids);
    for (const auto& block : *blocks) x = block->as<LlamaBlock>()->forward(x, rotated);
    return at::linear(norm(x), tokens->weight);
  }

  torch::nn::Embedding tokens;
  torch::nn::ModuleList blocks;
  RmsNorm norm;
  at::Tensor frequencies;  ///< [head_dim], of the angles
};
TORCH_MODULE(Llama);

}  // namespace examples
