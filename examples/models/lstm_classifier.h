// Classifies sequences by the last state of a stacked LSTM.
#pragma once

#include <ATen/ATen.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/rnn.h>

#include <tuple>

namespace examples {

struct LstmClassifierOptions {
  int64_t features = 40;
  int64_t hidden = 128;
  int64_t layers = 2;
  int64_t classes = 10;
};

struct LstmClassifierImpl : torch::nn::Module {
  explicit LstmClassifierImpl(const LstmClassifierOptions& o = {})
      : lstm(torch::nn::LSTMOptions(o.features, o.hidden).num_layers(o.layers).batch_first(true)),
        fc(o.hidden, o.classes) {
    register_module("lstm", lstm);
    register_module("fc", fc);
  }

  /// [n, steps, features] -> [n, classes]
  at::Tensor forward(const at::Tensor& x) { return fc(std::get<0>(lstm(x)).select(1, -1)); }

  torch::nn::LSTM lstm;
  torch::nn::Linear fc;
};
TORCH_MODULE(LstmClassifier);

}  // namespace examples
