// MobileNetV2: inverted residuals around depthwise convolutions.
// Source: Sandler et al., MobileNetV2: Inverted Residuals and Linear Bottlenecks, 2018
#pragma once

#include <ATen/ATen.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include <algorithm>
#include <vector>

namespace examples {

/// Blocks of one width; the stride applies to the first.
struct MobileNetStage {
  int64_t expansion, channels, blocks, stride;
};

struct MobileNetV2Options {
  double width = 1.0;  ///< multiplier of every layer's channels, rounded to multiples of 8
  std::vector<MobileNetStage> stages = {{1, 16, 1, 1}, {6, 24, 2, 2},  {6, 32, 3, 2}, {6, 64, 4, 2},
                                        {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};
  int64_t stem = 32;
  int64_t head = 1280;  ///< channels before the classifier; not reduced by `width` below 1
  int64_t classes = 1000;
  int64_t channels = 3;       ///< of the image
  bool small_images = false;  ///< about 32x32: the stem and the second stage keep the size

  int64_t scaled(int64_t narrow) const {
    const auto requested = static_cast<int64_t>(static_cast<double>(narrow) * width);
    return std::max<int64_t>(8, (requested + 4) / 8 * 8);
  }
};

/// Appends a convolution, which preserves the image's size up to its stride, and a normalisation.
inline void push_conv(torch::nn::Sequential& to, int64_t in, int64_t out, int64_t kernel,
                      int64_t stride = 1, int64_t groups = 1) {
  to->push_back(torch::nn::Conv2d(torch::nn::Conv2dOptions(in, out, kernel)
                                      .stride(stride)
                                      .padding(kernel / 2)
                                      .groups(groups)
                                      .bias(false)));
  to->push_back(torch::nn::BatchNorm2d(out));
}

struct InvertedResidualImpl : torch::nn::Module {
  InvertedResidualImpl(int64_t in, int64_t out, int64_t expansion, int64_t stride)
      : adds(in == out && stride == 1) {
    const int64_t hidden = in * expansion;
    if (expansion != 1) {
      push_conv(layers, in, hidden, 1);
      layers->push_back(torch::nn::ReLU6());
    }
    push_conv(layers, hidden, hidden, 3, stride, hidden);
    layers->push_back(torch::nn::ReLU6());
    push_conv(layers, hidden, out, 1);
    register_module("layers", layers);
  }

  at::Tensor forward(const at::Tensor& x) {
    const at::Tensor y = layers->forward(x);
    return adds ? x + y : y;
  }

  torch::nn::Sequential layers;
  bool adds;
};
TORCH_MODULE(InvertedResidual);

struct MobileNetV2Impl : torch::nn::Module {
  explicit MobileNetV2Impl(const MobileNetV2Options& o = {}) {
    int64_t channels = o.scaled(o.stem);
    push_conv(features, o.channels, channels, 3, o.small_images ? 1 : 2);
    features->push_back(torch::nn::ReLU6());
    for (size_t s = 0; s < o.stages.size(); ++s) {
      const MobileNetStage& stage = o.stages[s];
      const int64_t out = o.scaled(stage.channels);
      const int64_t first_stride = o.small_images && s == 1 ? 1 : stage.stride;
      for (int64_t i = 0; i < stage.blocks; ++i) {
        const int64_t stride = i == 0 ? first_stride : 1;
        features->push_back(InvertedResidual(channels, out, stage.expansion, stride));
        channels = out;
      }
    }
    const int64_t head = std::max(o.head, o.scaled(o.head));
    push_conv(features, channels, head, 1);
    features->push_back(torch::nn::ReLU6());
    classifier = torch::nn::Linear(head, o.classes);
    register_module("features", features);
    register_module("classifier", classifier);
  }

  /// [n, channels, h, w] -> [n, classes]
  at::Tensor forward(const at::Tensor& x) { return classifier(features->forward(x).mean({2, 3})); }

  torch::nn::Sequential features;
  torch::nn::Linear classifier{nullptr};
};
TORCH_MODULE(MobileNetV2);

}  // namespace examples
