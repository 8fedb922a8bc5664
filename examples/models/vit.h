// A vision transformer with its own attention module.
// Source: Dosovitskiy et al., An Image is Worth 16x16 Words, 2020
#pragma once

#include <ATen/ATen.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>

#include <cmath>
#include <vector>

namespace examples {

struct ViTOptions {
  int64_t image = 224;  ///< height and width of the input
  int64_t patch = 16;
  int64_t embedding = 192;
  int64_t depth = 12;
  int64_t heads = 3;
  int64_t mlp = 768;  ///< hidden units between the two linear layers of a block
  int64_t classes = 1000;
  int64_t channels = 3;  ///< of the image
};

/// Self-attention. `heads` is fixed; the width of a head follows from the weights.
struct AttentionImpl : torch::nn::Module {
  AttentionImpl(int64_t embedding, int64_t head_count)
      : qkv(embedding, 3 * embedding),
        out(embedding, embedding),
        heads(head_count),
        scale(1 / std::sqrt(static_cast<double>(embedding) / static_cast<double>(head_count))) {
    register_module("qkv", qkv);
    register_module("out", out);
  }

  /// [n, tokens, embedding] -> the same
  at::Tensor forward(const at::Tensor& x) {
    const std::vector<at::Tensor> parts =
        qkv(x).reshape({x.size(0), x.size(1), 3, heads, -1}).permute({2, 0, 3, 1, 4}).unbind(0);
    const at::Tensor scores = at::matmul(parts[0] * scale, parts[1].transpose(-2, -1));
    return out(at::matmul(scores.softmax(-1), parts[2]).transpose(1, 2).flatten(2));
  }

  torch::nn::Linear qkv, out;
  int64_t heads;
  double scale;  ///< as trained; does not change when heads become narrower
};
TORCH_MODULE(Attention);

struct TransformerBlockImpl : torch::nn::Module {
  TransformerBlockImpl(int64_t embedding, int64_t heads, int64_t mlp)
      : norm1(torch::nn::LayerNormOptions({embedding})),
        norm2(torch::nn::LayerNormOptions({embedding})),
        attention(embedding, heads),
        fc1(embedding, mlp),
        fc2(mlp, embedding) {
    register_module("norm1", norm1);
    register_module("attention", attention);
    register_module("norm2", norm2);
    register_module("fc1", fc1);
    register_module("fc2", fc2);
  }

  at::Tensor forward(at::Tensor x) {
    x = x + attention(norm1(x));
    return x + fc2(at::gelu(fc1(norm2(x))));
  }

  torch::nn::LayerNorm norm1, norm2;
  Attention attention;
  torch::nn::Linear fc1, fc2;
};
TORCH_MODULE(TransformerBlock);

struct ViTImpl : torch::nn::Module {
  explicit ViTImpl(const ViTOptions& o = {})
      : patches(torch::nn::Conv2dOptions(o.channels, o.embedding, o.patch).stride(o.patch)),
        norm(torch::nn::LayerNormOptions({o.embedding})),
        head(o.embedding, o.classes) {
    const int64_t tokens = (o.image / o.patch) * (o.image / o.patch) + 1;
    class_token = register_parameter("class_token", 0.02 * at::randn({1, 1, o.embedding}));
    position = register_parameter("position", 0.02 * at::randn({1, tokens, o.embedding}));
    register_module("patches", patches);
    for (int64_t i = 0; i < o.depth; ++i) {
      blocks->push_back(TransformerBlock(o.embedding, o.heads, o.mlp));
    }
    register_module("blocks", blocks);
    register_module("norm", norm);
    register_module("head", head);
  }

  /// [n, channels, image, image] -> [n, classes]
  at::Tensor forward(at::Tensor x) {
    x = patches(x).flatten(2).transpose(1, 2);
    x = at::cat({class_token.expand({x.size(0), -1, -1}), x}, 1) + position;
    return head(norm(blocks->forward(x)).select(1, 0));
  }

  at::Tensor class_token, position;
  torch::nn::Conv2d patches;
  torch::nn::Sequential blocks;
  torch::nn::LayerNorm norm;
  torch::nn::Linear head;
};
TORCH_MODULE(ViT);

}  // namespace examples
