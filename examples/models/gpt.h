// A language model with learned positions; the token embedding is tied to the output head.
// Source: Radford et al., Language Models are Unsupervised Multitask Learners, 2019
#pragma once

#include <ATen/ATen.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>

#include <cmath>
#include <vector>

#include "causal_attention.h"

namespace examples {

struct GptOptions {
  int64_t vocabulary = 256;  ///< bytes
  int64_t context = 128;     ///< maximum number of tokens
  int64_t embedding = 128;
  int64_t depth = 4;
  int64_t heads = 4;
  int64_t mlp = 512;  ///< hidden units between the two linear layers of a block
};

struct GptBlockImpl : torch::nn::Module {
  explicit GptBlockImpl(const GptOptions& o)
      : norm1(torch::nn::LayerNormOptions({o.embedding})),
        norm2(torch::nn::LayerNormOptions({o.embedding})),
        qkv(o.embedding, 3 * o.embedding),
        out(o.embedding, o.embedding),
        fc1(o.embedding, o.mlp),
        fc2(o.mlp, o.embedding),
        heads(o.heads),
        scale(1 / std::sqrt(static_cast<double>(o.embedding) / static_cast<double>(o.heads))) {
    register_module("norm1", norm1);
    register_module("qkv", qkv);
    register_module("out", out);
    register_module("norm2", norm2);
    register_module("fc1", fc1);
    register_module("fc2", fc2);
  }

  /// [n, length, embedding] -> the same
  at::Tensor forward(at::Tensor x) {
    std::vector<at::Tensor> parts = qkv(norm1(x)).chunk(3, -1);
    for (at::Tensor& part : parts) part = split_heads(part, heads);
    x = x + out(attend(parts[0], parts[1], parts[2], scale));
    return x + fc2(at::gelu(fc1(norm2(x))));
  }

  torch::nn::LayerNorm norm1, norm2;
  torch::nn::Linear qkv, out, fc1, fc2;
  int64_t heads;
  double scale;  ///< as trained; does not change when heads become narrower
};
TORCH_MODULE(GptBlock);

struct GptImpl : torch::nn::Module {
  explicit GptImpl(const GptOptions& o = {})
      : tokens(o.vocabulary, o.embedding),
        positions(o.context, o.embedding),
        norm(torch::nn::LayerNormOptions({o.embedding})) {
    constexpr double kDeviation = 0.02;
    const at::NoGradGuard no_grad;
    tokens->weight.normal_(0, kDeviation);
    positions->weight.normal_(0, kDeviation);
    register_module("tokens", tokens);
    register_module("positions", positions);
    for (int64_t i = 0; i < o.depth; ++i) blocks->push_back(GptBlock(o));
    register_module("blocks", blocks);
    register_module("norm", norm);
  }

  /// Indices [n, length] -> [n, length, vocabulary]: logits of the next token
  at::Tensor forward(const at::Tensor& ids) {
    const at::Tensor x = blocks->forward(tokens(ids) + positions(places(ids)));
    return at::linear(norm(x), tokens->weight);
  }

  torch::nn::Embedding tokens, positions;
  torch::nn::Sequential blocks;
  torch::nn::LayerNorm norm;
};
TORCH_MODULE(Gpt);

}  // namespace examples
