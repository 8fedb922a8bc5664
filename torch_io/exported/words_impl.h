// Types, literals and operators of torch.export programs, and their names in TorchScript.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/function_schema.h>
#include <ATen/core/ivalue.h>
#include <ATen/core/jit_type.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "parsimony/base/json_reader.h"

namespace parsimony::torch_io::exported {

/// An element type. @source torch/_export/serde/schema.py, ScalarType
struct TypeRow {
  int64_t code;           ///< in the program
  at::ScalarType type;    ///< of libtorch
  std::string_view name;  ///< of ElementType
};

/// Returns null for types that this libtorch does not have.
const TypeRow* type_of_code(int64_t code);
const TypeRow* type_of_name(std::string_view name);
const TypeRow* type_of(at::ScalarType type);

/// Returns libtorch's integer for a layout or memory format of a program.
std::optional<int64_t> layout_of_code(int64_t code);
std::optional<int64_t> memory_format_of_code(int64_t code);

/// Returns the constant that `arg`, a union of one member such as {"as_ints": [1, 1]}, stands for
/// as a parameter of this type; null for an unknown one. Empty if it is a value, a list with
/// values, or has no equivalent in TorchScript.
std::optional<c10::IValue> literal_of(const JsonReader& arg, const c10::TypePtr& type);

struct Target {
  std::string kind;                             ///< "aten::conv2d"; "unknown::…" if it is not run
  const c10::FunctionSchema* schema = nullptr;  ///< null for other operators and functions
  bool is_number = false;                       ///< a Python function on numbers
  bool passes = false;                          ///< an assertion or hint without effect
  bool inlines = false;                         ///< runs a subgraph inline
  bool branches = false;                        ///< torch.cond
};

/// Looks up "torch.ops.aten.conv2d.default" or "_operator.mul".
Target target_of(const std::string& text);

}  // namespace parsimony::torch_io::exported
