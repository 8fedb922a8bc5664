// JSON values with the place where they stand, for messages.
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace parsimony {

/// @throws ConfigError with line and column, or for a key that stands twice
nlohmann::json parse_json(std::string_view text, std::string_view file_name);

/// "string", "array", …
std::string_view type_name(const nlohmann::json& value);

std::vector<std::string> read_strings(const nlohmann::json& value, std::string_view place);
std::string read_string(const nlohmann::json& value, std::string_view place);
bool read_bool(const nlohmann::json& value, std::string_view place);

/// A number of [0, 1], or of [0, 1) if 1 is not allowed.
double read_ratio(const nlohmann::json& value, std::string_view place, bool one_allowed);
int read_int(const nlohmann::json& value, std::string_view place, int least, int most);

}  // namespace parsimony
