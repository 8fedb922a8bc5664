// One small convolutional network as each kind of TrainableModel, for [n, 3, 32, 32] and ten
// classes.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <string>

#include "parsimony/data/dataset.h"
#include "parsimony/training/net/trainable_model.h"
#include "tests/support/fixture.h"

namespace parsimony::test {

using MakeNet = std::function<std::unique_ptr<training::TrainableModel>()>;

/// "live", "onnx" or "script". Files go to `folder`.
MakeNet small_net(const std::string& kind, const TemporaryFolder& folder);

/// The same network without a file: fresh weights at every call. Answers may be dropped.
MakeNet live_small_net(double dropout = 0);

/// Writes a model in the notation of OnnxParser with seeded weights "W 8x3x3x3".
struct Weighted {
  std::string name;
  std::string dims;
  std::string kind = "";
};
void write_onnx(const std::string& path, const std::string& text,
                const std::vector<Weighted>& weights);

/// Moves the weights of an ONNX file into one beside it.
void move_weights_out(const std::string& path);

/// 256 images to train with and 64 to test with.
const Dataset& small_data();

at::Tensor example();

/// In evaluation mode, without gradients.
at::Tensor predictions(training::TrainableModel& net, const at::Tensor& x);

/// Elements of all parameters.
int64_t size_of(training::TrainableModel& net);

}  // namespace parsimony::test
