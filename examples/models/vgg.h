// VGG-16 with batch normalisation and one linear layer, for images of about 32x32.
// Source: Simonyan and Zisserman, Very Deep Convolutional Networks, 2014
#pragma once

#include <ATen/ATen.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/pooling.h>

#include <vector>

namespace examples {

struct VggOptions {
  int64_t width = 64;  ///< channels of the first block; the next have 2, 4, 8 and 8 times as many
  std::vector<int64_t> layers = {2, 2, 3, 3, 3};  ///< per block; each halves the image at its end
  int64_t classes = 10;
  int64_t channels = 3;  ///< of the image
};

struct VggImpl : torch::nn::Module {
  explicit VggImpl(const VggOptions& o = {}) {
    int64_t in = o.channels;
    int64_t out = o.width;
    for (size_t block = 0; block < o.layers.size(); ++block) {
      for (int64_t i = 0; i < o.layers[block]; ++i) {
        features->push_back(torch::nn::Conv2d(torch::nn::Conv2dOptions(in, out, 3).padding(1)));
        features->push_back(torch::nn::BatchNorm2d(out));
        features->push_back(torch::nn::ReLU());
        in = out;
      }
      features->push_back(torch::nn::MaxPool2d(torch::nn::MaxPool2dOptions(2)));
      if (block < 3) out *= 2;
    }
    classifier = torch::nn::Linear(in, o.classes);
    register_module("features", features);
    register_module("classifier", classifier);
  }

  /// [n, channels, h, w], h and w at least 32 -> [n, classes]
  at::Tensor forward(const at::Tensor& x) { return classifier(features->forward(x).mean({2, 3})); }

  torch::nn::Sequential features;
  torch::nn::Linear classifier{nullptr};
};
TORCH_MODULE(Vgg);

}  // namespace examples
