#include <algorithm>
#include <set>

#include "parsimony/configs/errors.h"
#include "parsimony/configs/json_impl.h"

namespace parsimony {

namespace {

using Json = nlohmann::json;

/// What the parser says, without its own account of where.
std::string reason_of(const std::exception& error) {
  const std::string_view text = error.what();
  const size_t colon = text.find(": ");
  return std::string(colon == std::string_view::npos ? text : text.substr(colon + 2));
}

ConfigError syntax_error(std::string_view text, std::string_view file,
                         const Json::parse_error& error) {
  const std::string_view before = text.substr(0, error.byte > 0 ? error.byte - 1 : 0);
  const size_t line_start = before.rfind('\n') + 1;  // npos + 1 is 0
  const size_t line = static_cast<size_t>(std::count(before.begin(), before.end(), '\n')) + 1;
  return errors::config_syntax(file, line, before.size() - line_start + 1, reason_of(error));
}

}  // namespace

Json parse_json(std::string_view text, std::string_view file_name) {
  std::vector<std::set<std::string>> keys;
  const auto reject_duplicates = [&](int /*depth*/, Json::parse_event_t event, Json& parsed) {
    if (event == Json::parse_event_t::object_start) keys.emplace_back();
    if (event == Json::parse_event_t::object_end) keys.pop_back();
    if (event == Json::parse_event_t::key &&
        !keys.back().insert(parsed.get<std::string>()).second) {
      throw errors::duplicate_key(file_name, parsed.get<std::string>());
    }
    return true;
  };
  try {
    return Json::parse(text, reject_duplicates);
  } catch (const Json::parse_error& error) {
    throw syntax_error(text, file_name, error);
  } catch (const Json::exception& error) {
    throw errors::config_syntax(file_name, 1, 1, reason_of(error));  // a number out of range
  }
}

std::string_view type_name(const Json& value) { return value.type_name(); }

std::vector<std::string> read_strings(const Json& value, std::string_view place) {
  constexpr std::string_view kWanted = "array of strings";
  if (!value.is_array()) throw errors::wrong_type(place, type_name(value), kWanted);
  if (value.empty()) throw errors::empty_list(place);
  std::vector<std::string> result;
  for (const Json& item : value) {
    if (!item.is_string()) {
      const std::string at = std::string(place) + '[' + std::to_string(result.size()) + ']';
      throw errors::wrong_type(at, type_name(item), "string");
    }
    result.push_back(item.get<std::string>());
  }
  return result;
}

std::string read_string(const Json& value, std::string_view place) {
  if (!value.is_string()) throw errors::wrong_type(place, type_name(value), "string");
  return value.get<std::string>();
}

bool read_bool(const Json& value, std::string_view place) {
  if (!value.is_boolean()) throw errors::wrong_type(place, type_name(value), "true or false");
  return value.get<bool>();
}

double read_ratio(const Json& value, std::string_view place, bool one_allowed) {
  const std::string_view range = one_allowed ? "[0, 1]" : "[0, 1)";
  if (!value.is_number()) {
    throw errors::wrong_type(place, type_name(value), "number in " + std::string(range));
  }
  const double ratio = value.get<double>();
  if (!(ratio >= 0 && (one_allowed ? ratio <= 1 : ratio < 1))) {
    throw errors::out_of_range(place, value.dump(), range);
  }
  return ratio;
}

int read_int(const Json& value, std::string_view place, int least, int most) {
  if (!value.is_number_integer()) throw errors::wrong_type(place, type_name(value), "integer");
  const bool fits = value.is_number_unsigned()
                        ? value.get<uint64_t>() <= static_cast<uint64_t>(most)
                        : value.get<int64_t>() <= most;
  if (!fits || value.get<int64_t>() < least) {
    const std::string range = '[' + std::to_string(least) + ", " + std::to_string(most) + ']';
    throw errors::out_of_range(place, value.dump(), range);
  }
  return value.get<int>();
}

}  // namespace parsimony
