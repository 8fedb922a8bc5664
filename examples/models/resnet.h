// Residual networks: ResNet-18 and ResNet-50 as for ImageNet, ResNet-20 and ResNet-56 for
// small images. Source: He et al., Deep Residual Learning for Image Recognition, 2015
#pragma once

#include <ATen/ATen.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/pooling.h>

#include <string>
#include <vector>

namespace examples {

struct ResNetOptions {
  int64_t width = 64;  ///< channels of the first stage; doubled in each next
  std::vector<int64_t> blocks = {2, 2, 2, 2};  ///< per stage
  bool bottleneck = false;  ///< blocks of 1x1, 3x3 and 1x1 convolutions, four times as wide outside
  int64_t classes = 1000;
  int64_t channels = 3;       ///< of the image
  bool small_images = false;  ///< about 32x32: the stem is one 3x3 convolution of stride 1
};

/// Options of a network of 6 · blocks + 2 layers; unlike the paper's, its shortcuts are
/// convolutions.
inline ResNetOptions cifar_resnet(int64_t blocks) {
  return {.width = 16, .blocks = {blocks, blocks, blocks}, .classes = 10, .small_images = true};
}
inline ResNetOptions resnet18() { return {}; }
inline ResNetOptions resnet50() { return {.blocks = {3, 4, 6, 3}, .bottleneck = true}; }

/// Appends a convolution, which preserves the image's size up to its stride, and a normalisation.
inline void push_conv_norm(torch::nn::Sequential& to, int64_t in, int64_t out, int64_t kernel,
                           int64_t stride) {
  to->push_back(torch::nn::Conv2d(
      torch::nn::Conv2dOptions(in, out, kernel).stride(stride).padding(kernel / 2).bias(false)));
  to->push_back(torch::nn::BatchNorm2d(out));
}

struct ResidualBlockImpl : torch::nn::Module {
  ResidualBlockImpl(int64_t in, int64_t width, int64_t stride, bool bottleneck) {
    const int64_t out = bottleneck ? 4 * width : width;
    if (bottleneck) {
      push_conv_norm(branch, in, width, 1, 1);
      branch->push_back(torch::nn::ReLU());
      push_conv_norm(branch, width, width, 3, stride);
      branch->push_back(torch::nn::ReLU());
      push_conv_norm(branch, width, out, 1, 1);
    } else {
      push_conv_norm(branch, in, width, 3, stride);
      branch->push_back(torch::nn::ReLU());
      push_conv_norm(branch, width, out, 3, 1);
    }
    if (in != out || stride != 1) push_conv_norm(shortcut, in, out, 1, stride);
    register_module("branch", branch);
    register_module("shortcut", shortcut);
  }

  at::Tensor forward(const at::Tensor& x) {
    const at::Tensor skipped = shortcut->is_empty() ? x : shortcut->forward(x);
    return (branch->forward(x) + skipped).relu();
  }

  torch::nn::Sequential branch, shortcut;
};
TORCH_MODULE(ResidualBlock);

struct ResNetImpl : torch::nn::Module {
  explicit ResNetImpl(const ResNetOptions& o = resnet18()) {
    push_conv_norm(stem, o.channels, o.width, o.small_images ? 3 : 7, o.small_images ? 1 : 2);
    stem->push_back(torch::nn::ReLU());
    if (!o.small_images) {
      stem->push_back(torch::nn::MaxPool2d(torch::nn::MaxPool2dOptions(3).stride(2).padding(1)));
    }
    int64_t channels = o.width;
    int64_t width = o.width;
    for (size_t stage = 0; stage < o.blocks.size(); ++stage) {
      for (int64_t i = 0; i < o.blocks[stage]; ++i) {
        const int64_t stride = stage > 0 && i == 0 ? 2 : 1;
        blocks->push_back(ResidualBlock(channels, width, stride, o.bottleneck));
        channels = o.bottleneck ? 4 * width : width;
      }
      width *= 2;
    }
    fc = torch::nn::Linear(channels, o.classes);
    register_module("stem", stem);
    register_module("blocks", blocks);
    register_module("fc", fc);
  }

  /// [n, channels, h, w] -> [n, classes]
  at::Tensor forward(at::Tensor x) {
    x = at::adaptive_avg_pool2d(blocks->forward(stem->forward(x)), {1, 1});
    return fc(x.flatten(1));
  }

  torch::nn::Sequential stem, blocks;
  torch::nn::Linear fc{nullptr};
};
TORCH_MODULE(ResNet);

}  // namespace examples
