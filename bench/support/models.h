// The networks that are measured: their weights are random, their build is that of real ones.
#pragma once

#include <onnx/onnx_pb.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace parsimony::bench {

/// ResNet-50 for 224×224 images with its BatchNormalizations: 25.6 M parameters, 102 MB.
onnx::ModelProto resnet50();

/// How the layers of a network of any length hang together.
enum class Family : uint8_t {
  kChain,      ///< Conv, BatchNormalization, Relu; each layer has its own group
  kResidual,   ///< bottlenecks on one stream, which is one group with a member per block
  kDense,      ///< DenseNet: each layer of a block reads all layers before it
  kAttention,  ///< transformer blocks: heads by Reshape and Transpose, fused normalisation
  kListed,     ///< a chain as before IR version 4: every initializer is a graph input as well
};

std::string_view name_of(Family family);

/// A network of about `nodes` nodes with narrow layers.
onnx::ModelProto network(Family family, int nodes);

/// An MLP that is little else than one tensor of about `bytes`.
onnx::ModelProto one_large_tensor(int64_t bytes);

void save(const onnx::ModelProto& model, const std::string& path);

/// An MLP with a residual stream whose weights, about `bytes` in all, lie in PATH.data. Written in
/// pieces, so that it may exceed the memory.
void save_with_external_data(const std::string& path, int64_t bytes);

/// A folder for models that goes away with the object.
class Folder {
 public:
  Folder();
  ~Folder();
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  std::string operator/(std::string_view name) const { return path_ + "/" + std::string(name); }

 private:
  std::string path_;
};

}  // namespace parsimony::bench
