// A U-Net: skip connections join the encoder to the decoder.
// Source: Ronneberger et al., U-Net: Convolutional Networks for Biomedical Image Segmentation, 2015
#pragma once

#include <ATen/ATen.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/pooling.h>

#include <vector>

namespace examples {

struct UNetOptions {
  int64_t in = 3;
  int64_t classes = 2;
  int64_t width = 64;  ///< channels at full resolution; each level below has twice as many
  int64_t depth = 4;   ///< number of times the image is halved
};

/// Two convolutions of 3x3, each with normalisation and ReLU.
inline torch::nn::Sequential double_conv(int64_t in, int64_t out) {
  const auto conv = [out](int64_t from) {
    return torch::nn::Conv2d(torch::nn::Conv2dOptions(from, out, 3).padding(1).bias(false));
  };
  return torch::nn::Sequential(conv(in), torch::nn::BatchNorm2d(out), torch::nn::ReLU(), conv(out),
                               torch::nn::BatchNorm2d(out), torch::nn::ReLU());
}

struct UNetImpl : torch::nn::Module {
  explicit UNetImpl(const UNetOptions& o = {}) {
    int64_t width = o.width;
    down->push_back(double_conv(o.in, width));
    for (int64_t level = 0; level < o.depth; ++level, width *= 2) {
      down->push_back(double_conv(width, 2 * width));
    }
    for (int64_t level = 0; level < o.depth; ++level, width /= 2) {
      up->push_back(torch::nn::ConvTranspose2d(
          torch::nn::ConvTranspose2dOptions(width, width / 2, 2).stride(2)));
      join->push_back(double_conv(width, width / 2));
    }
    head = torch::nn::Conv2d(torch::nn::Conv2dOptions(width, o.classes, 1));
    register_module("down", down);
    register_module("up", up);
    register_module("join", join);
    register_module("head", head);
    register_module("pool", pool);
  }

  /// [n, in, h, w] -> [n, classes, h, w]; h and w are multiples of 2^depth
  at::Tensor forward(at::Tensor x) {
    std::vector<at::Tensor> seen;
    for (size_t i = 0; i < down->size(); ++i) {
      if (i > 0) x = pool(x);
      x = down[i]->as<torch::nn::Sequential>()->forward(x);
      seen.push_back(x);
    }
    seen.pop_back();
    for (size_t i = 0; i < up->size(); ++i) {
      x = up[i]->as<torch::nn::ConvTranspose2d>()->forward(x);
      x = join[i]->as<torch::nn::Sequential>()->forward(at::cat({seen.back(), x}, 1));
      seen.pop_back();
    }
    return head(x);
  }

  torch::nn::ModuleList down, up, join;
  torch::nn::Conv2d head{nullptr};
  torch::nn::MaxPool2d pool{torch::nn::MaxPool2dOptions(2)};
};
TORCH_MODULE(UNet);

}  // namespace examples
