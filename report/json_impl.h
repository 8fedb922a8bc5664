// JSON as the reports write it. Private to report/.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "parsimony/base/types.h"

namespace parsimony {

/// Keys stay in the order in which they were given.
using Json = nlohmann::ordered_json;

inline Json shape_json(const std::optional<Shape>& shape) {
  return shape ? Json(*shape) : Json(nullptr);
}

/// Indented, with a newline at the end. A name that is not UTF-8 is mended, not refused: a report
/// is for reading.
inline std::string dumped(const Json& document) {
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace parsimony
