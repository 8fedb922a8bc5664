// Sizes that a file leaves open, as inference and the choice of sizes see them. Private to graph/.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string_view>

#include "parsimony/graph/graph.h"

namespace parsimony {

inline bool is_index_type(DType type) {
  return type == DType::kInt64 || type == DType::kInt32 || type == DType::kBool;
}

/// -1 marks a size that the file leaves open.
inline bool is_open(std::span<const int64_t> dims) {
  return std::ranges::any_of(dims, [](int64_t d) { return d < 0; });
}

/// Empty for a dimension without one.
inline std::string_view symbol_of(const Value& value, size_t dim) {
  return dim < value.symbols.size() ? std::string_view(value.symbols[dim]) : std::string_view();
}

}  // namespace parsimony
