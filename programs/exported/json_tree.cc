#include <cstdint>
#include <limits>
#include <string>

#include "parsimony/programs/exported/json_tree_impl.h"

namespace parsimony::programs {

nlohmann::ordered_json tree_of(const JsonReader& value) {
  if (value.is_null()) return {};
  if (value.is_flag()) return value.flag();
  if (value.is_text()) return value.text();
  if (value.is_unsigned()) return value.unsigned_integer();
  if (value.is_integer()) return value.integer(std::numeric_limits<int64_t>::min(), 0);
  if (value.is_number()) return value.number();
  if (value.is_list()) {
    nlohmann::ordered_json::array_t list;
    list.reserve(value.size());
    for (const JsonReader item : value.list()) list.push_back(tree_of(item));
    return list;
  }
  nlohmann::ordered_json::object_t object;
  object.reserve(value.size());
  for (const JsonReader member : value.members()) {
    object.emplace_back(std::string(member.own_key()), tree_of(member));
  }
  return object;
}

}  // namespace parsimony::programs
