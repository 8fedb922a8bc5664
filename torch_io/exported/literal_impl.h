// Literals of a program as constants of TorchScript.
#pragma once

#include <ATen/core/ivalue.h>
#include <ATen/core/jit_type.h>

#include <optional>

#include "parsimony/base/json_reader.h"

namespace parsimony::torch_io::exported {

/// The constant that `arg`, a union of one member such as {"as_ints": [1, 1]}, is for a parameter
/// of this type; null for an unknown one. Empty if it is a value, a list with values, or nothing
/// that TorchScript has.
std::optional<c10::IValue> literal_of(const JsonReader& arg, const c10::TypePtr& type);

}  // namespace parsimony::torch_io::exported
