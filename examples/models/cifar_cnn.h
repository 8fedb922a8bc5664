// A CNN for 32x32 images: two convolutions, two linear layers; 2,122,186 parameters by default.
#pragma once

#include <ATen/ATen.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/pooling.h>

namespace examples {

struct CifarCnnOptions {
  int64_t width = 32;    ///< channels of the first convolution; the second has twice as many
  int64_t hidden = 512;  ///< width of the first linear layer
  int64_t image = 32;    ///< height and width of the input, a multiple of 4
  int64_t classes = 10;
  int64_t channels = 3;  ///< of the image
};

struct CifarCnnImpl : torch::nn::Module {
  explicit CifarCnnImpl(const CifarCnnOptions& o = {})
      : conv1(torch::nn::Conv2dOptions(o.channels, o.width, 3).padding(1)),
        conv2(torch::nn::Conv2dOptions(o.width, 2 * o.width, 3).padding(1)),
        fc1(2 * o.width * (o.image / 4) * (o.image / 4), o.hidden),
        fc2(o.hidden, o.classes),
        pool(torch::nn::MaxPool2dOptions(2)) {
    register_module("conv1", conv1);
    register_module("conv2", conv2);
    register_module("fc1", fc1);
    register_module("fc2", fc2);
    register_module("pool", pool);
  }

  /// [n, channels, image, image] -> [n, classes]
  at::Tensor forward(at::Tensor x) {
    x = pool(conv1(x).relu());
    x = pool(conv2(x).relu());
    return fc2(fc1(x.flatten(1)));
  }

  torch::nn::Conv2d conv1, conv2;
  torch::nn::Linear fc1, fc2;
  torch::nn::MaxPool2d pool;
};
TORCH_MODULE(CifarCnn);

}  // namespace examples
