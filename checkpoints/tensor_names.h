// The tensors of a checkpoint by name.
#pragma once

#include <absl/container/flat_hash_map.h>

#include <string>

#include "parsimony/checkpoints/checkpoint.h"

namespace parsimony {

/// A tensor's name within the whole file: its path, joined by dots, without the dictionaries in
/// which a pickled module keeps its parts.
std::string dotted_name(const StoredTensor& tensor);

/// The tensors of a checkpoint by dotted name.
class TensorNames {
 public:
  explicit TensorNames(const Checkpoint& checkpoint);
  TensorId find(const std::string& name) const;  ///< kNone if there is none

 private:
  absl::flat_hash_map<std::string, TensorId> ids_;
};

}  // namespace parsimony
