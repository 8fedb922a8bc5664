#include "parsimony/checkpoints/tensor_names.h"

#include <array>

#include "parsimony/base/ranges.h"

namespace parsimony {

std::string dotted_name(const StoredTensor& tensor) {
  constexpr auto kModuleParts =
      std::to_array<std::string_view>({"_modules", "_parameters", "_buffers"});
  std::string name;
  for (const std::string& key : tensor.path) {
    if (!contains(kModuleParts, key)) name += (name.empty() ? "" : ".") + key;
  }
  return name;
}

TensorNames::TensorNames(const Checkpoint& checkpoint) {
  for (const TensorId id : checkpoint.tensors().ids()) {
    ids_.try_emplace(dotted_name(checkpoint.tensors()[id]), id);
  }
}

TensorId TensorNames::find(const std::string& name) const {
  const auto found = ids_.find(name);
  return found == ids_.end() ? TensorId() : found->second;
}

}  // namespace parsimony
