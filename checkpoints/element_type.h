// Element types as checkpoints name them: those that PyTorch has, most of which no model of ours
// computes with.
#pragma once

#include <cstdint>
#include <string_view>

#include "parsimony/base/types.h"

namespace parsimony {

struct ElementType {
  std::string_view name;         ///< of torch: "float32"
  std::string_view storage;      ///< "FloatStorage"; empty if only untyped storages hold it
  std::string_view safetensors;  ///< "F32"; empty if that format has none
  int64_t bytes = 0;
  DType dtype = DType::kUnknown;  ///< unknown if we do not compute with it
};

/// Null for an unknown name.
const ElementType* element_type_of_name(std::string_view name);
const ElementType* element_type_of_storage(std::string_view storage);
const ElementType* element_type_of_safetensors(std::string_view name);

}  // namespace parsimony
