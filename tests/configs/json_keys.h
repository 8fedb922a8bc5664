#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace parsimony::test {

inline std::vector<std::string> keys_of(const nlohmann::json& object) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : object.items()) keys.push_back(key);
  return keys;
}

}  // namespace parsimony::test
