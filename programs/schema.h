// Schemas of ATen operators: the order, kinds and defaults of their arguments.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "parsimony/programs/sources.h"

namespace parsimony::programs {

struct Parameter {
  enum class Kind : uint8_t { kOther, kReal, kScalar };

  std::string name;
  Kind kind = Kind::kOther;
  bool is_list = false;
  std::optional<Binding> fallback;  ///< empty: an argument is required
};

struct Schema {
  std::vector<Parameter> parameters;
  size_t results = 0;
};

/// The schema of an operator that the table of lowerings or `Numbers` knows; null for others.
/// In-place forms have that of the operator without "_".
/// @param overload  "Tensor"; "default" or empty for the one without a name
/// @source native_functions.yaml of PyTorch 2.15 (tools/exported/schemas.py)
const Schema* find_schema(std::string_view op, std::string_view overload);

}  // namespace parsimony::programs
