// Sizes of a network's inputs, as a user gives them. Those that a file
// declares may leave some open.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "parsimony/base/types.h"

namespace parsimony {

inline bool fits_declared(std::span<const int64_t> sizes, std::span<const int64_t> declared) {
  return std::ranges::equal(
      sizes, declared, [](int64_t size, int64_t wanted) { return wanted < 0 || size == wanted; });
}

/// Shape of one graph input and, if it controls the network, the value of all its elements.
struct InputSpec {
  Shape dims;
  std::optional<double> value;
  DType dtype = DType::kUnknown;  ///< for formats that do not declare it
  bool open = false;              ///< the shape is not given: as the model declares it
  std::string name = {};          ///< of the input; empty: by position

  bool operator==(const InputSpec&) const = default;
};

/// Reads "1x3x32x32", "2x8:int64", ":int64=16000" or ":float32=0.5" (scalars with their values),
/// each also behind "NAME="; "NAME=0.5", a value for all elements; "?", nothing.
/// @throws ConfigError
InputSpec parse_input_spec(std::string_view text);

/// As `parse_input_spec` reads it.
std::string to_text(const InputSpec& spec);

}  // namespace parsimony
