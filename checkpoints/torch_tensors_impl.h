// The tensors that a pickle of torch.save describes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "parsimony/checkpoints/checkpoint.h"
#include "parsimony/checkpoints/pickle.h"
#include "parsimony/checkpoints/storage_impl.h"

namespace parsimony::checkpoints {

/// A storage as the pickle names it.
struct NamedStorage {
  std::string key;
  const ElementType* type = nullptr;
  int64_t elements = 0;
  std::vector<pickle::Part> counts;  ///< every place that says how many elements it has
  std::string why_fixed;
};

/// The parts of the pickle that describe one tensor.
struct TensorParts {
  pickle::Part offset, dims, strides;
};

struct PickledTensors {
  IdVector<TensorId, StoredTensor> tensors;
  IdVector<TensorId, TensorParts> parts;
  IdVector<StorageId, NamedStorage> storages;
  std::vector<CheckpointLine> tree;
};

/// @throws ModelError if a tensor is described in a way that PyTorch does not
PickledTensors tensors_of(const pickle::Pickle& pickle, std::string_view file);

/// Why torch.load(weights_only=True) would refuse the pickle.
std::vector<std::string> refused_by_weights_only(const pickle::Pickle& pickle);

}  // namespace parsimony::checkpoints
