// Reading the attributes of a node. An attribute of another type counts as absent; rules that must
// reject it use NodeView.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "parsimony/graph/graph.h"

namespace parsimony {

/// Null if there is no attribute of that name.
inline const Attribute* find_attribute(const Node& node, std::string_view name) {
  for (const auto& [own, value] : node.attributes) {
    if (own == name) return &value;
  }
  return nullptr;
}

/// Null if there is none of that name and type.
template <typename T>
const T* attr_if(const Node& node, std::string_view name) {
  const Attribute* found = find_attribute(node, name);
  return found == nullptr ? nullptr : std::get_if<T>(found);
}

inline int64_t attr(const Node& node, std::string_view name, int64_t fallback) {
  const auto* value = attr_if<int64_t>(node, name);
  return value == nullptr ? fallback : *value;
}

inline int64_t attr(const Node& node, std::string_view name, int fallback) {
  return attr(node, name, int64_t{fallback});
}

inline double attr(const Node& node, std::string_view name, double fallback) {
  const auto* value = attr_if<double>(node, name);
  return value == nullptr ? fallback : *value;
}

inline std::string attr(const Node& node, std::string_view name, std::string_view fallback) {
  const auto* value = attr_if<std::string>(node, name);
  return value == nullptr ? std::string(fallback) : *value;
}

/// Empty if absent.
inline std::vector<int64_t> attrs(const Node& node, std::string_view name) {
  const auto* value = attr_if<std::vector<int64_t>>(node, name);
  return value == nullptr ? std::vector<int64_t>{} : *value;
}

}  // namespace parsimony
