// How programs of torch.export write types, and ours of the same.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string_view>

namespace parsimony::torch_io::exported {

/// An element type. @source torch/_export/serde/schema.py, ScalarType
struct TypeRow {
  int64_t code;           ///< in the program
  at::ScalarType type;    ///< of libtorch
  std::string_view name;  ///< of ElementType
};

/// Null for types that this libtorch lacks.
const TypeRow* type_of_code(int64_t code);
const TypeRow* type_of_name(std::string_view name);
const TypeRow* type_of(at::ScalarType type);

/// What libtorch's integer is for a layout or a memory format of a program.
std::optional<int64_t> layout_of_code(int64_t code);
std::optional<int64_t> memory_format_of_code(int64_t code);

}  // namespace parsimony::torch_io::exported
