// JSON helpers of the reports. Private to report/.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "parsimony/base/types.h"

namespace parsimony {

/// Keys keep their order.
using Json = nlohmann::ordered_json;

inline Json shape_json(const std::optional<Shape>& shape) {
  return shape ? Json(*shape) : Json(nullptr);
}

/// Indented, with a newline at the end. Invalid UTF-8 in names is replaced, not rejected: a report
/// is for reading.
inline std::string dumped(const Json& document) {
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace parsimony
