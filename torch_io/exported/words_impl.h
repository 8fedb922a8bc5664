// How programs of torch.export write types, literals and operators, and what TorchScript calls the
// same.
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

/// Null for types that this libtorch lacks.
const TypeRow* type_of_code(int64_t code);
const TypeRow* type_of_name(std::string_view name);
const TypeRow* type_of(at::ScalarType type);

/// What libtorch's integer is for a layout or a memory format of a program.
std::optional<int64_t> layout_of_code(int64_t code);
std::optional<int64_t> memory_format_of_code(int64_t code);

/// The constant that `arg`, a union of one member such as {"as_ints": [1, 1]}, is for a parameter
/// of this type; null for an unknown one. Empty if it is a value, a list with values, or nothing
/// that TorchScript has.
std::optional<c10::IValue> literal_of(const JsonReader& arg, const c10::TypePtr& type);

struct Target {
  std::string kind;                             ///< "aten::conv2d"; "unknown::…" if it is not run
  const c10::FunctionSchema* schema = nullptr;  ///< null for other operators and functions
  bool is_number = false;                       ///< a function of Python on numbers
  bool passes = false;                          ///< it only checks, or hints at, what is so anyhow
  bool inlines = false;                         ///< it runs a sub-graph as it is
  bool branches = false;                        ///< torch.cond
};

/// For "torch.ops.aten.conv2d.default" or "_operator.mul".
Target target_of(const std::string& text);

}  // namespace parsimony::torch_io::exported
