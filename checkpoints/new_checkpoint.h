// A new file of torch.save.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "parsimony/base/types.h"
#include "parsimony/checkpoints/checkpoint.h"

namespace parsimony {

/// A tensor to be saved; it refers to its elements, row-major. Tensors with the same elements share
/// a storage.
struct PlainTensor {
  std::string name;
  const ElementType* type = nullptr;
  Shape dims = {};
  std::span<const std::byte> elements = {};
  bool is_parameter = false;
  bool requires_grad = false;
};

/// Writes a dictionary of the tensors, in their order, as a zip archive that every
/// torch.load(weights_only=True) takes. @throws IoError
void write_new_checkpoint(const std::string& path, std::span<const PlainTensor> tensors);

}  // namespace parsimony
