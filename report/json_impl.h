// JSON of the reports. Private to report/.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "parsimony/base/errors.h"
#include "parsimony/base/types.h"

namespace parsimony {

/// JSON with ordered keys.
using Json = nlohmann::ordered_json;

/// Returns indented JSON with a newline at the end. Invalid UTF-8 in names is replaced, not
/// rejected: a report is for reading. NaN and infinity become null.
inline std::string dumped(const Json& document) {
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

/// Writes an object member by member. A struct is an object of the members that its `describe`
/// lists:
///
///     void describe(JsonWriter& json, const MemberRow& row) {
///       json("tensor", row.tensor)("axis", row.axis);
///     }
class JsonWriter {
 public:
  JsonWriter& operator()(const char* key, const auto& value) {
    object_[key] = of(value);
    return *this;
  }
  /// Omits the key if there is no value.
  JsonWriter& maybe(const char* key, const auto& value) {
    if (value) (*this)(key, *value);
    return *this;
  }
  /// Leaves the key out if the list is empty.
  void some(const char* key, const auto& values) {
    if (!values.empty()) (*this)(key, values);
  }
  /// Writes a number that older versions did not write.
  void or_zero(const char* key, double value) { object_[key] = value; }
  /// A member that version 1 calls `before`.
  void renamed(const char* key, const char* /*before*/, const auto& value) { (*this)(key, value); }
  void inner(const char* key, const auto& members) {
    JsonWriter json;
    members(json);
    object_[key] = json.taken();
  }
  Json taken() { return std::move(object_); }

  // Calls in a description that matter to readers only.
  void name(const char* key, const std::string& text) { object_[key] = text; }
  void share(const char* key, double value) { object_[key] = value; }
  void finite_or(const char* key, double value, double /*instead*/) { object_[key] = value; }
  void json(const char* key, const std::string& text) {
    object_[key] = Json::parse(text, nullptr, false);
    if (!object_[key].is_object())
      throw ConfigError("a ledger point's config is not a JSON object");
  }
  void require(bool /*holds*/, const char* /*why_not*/) {}

 private:
  template <typename Value>
  static Json of(const Value& value) {
    if constexpr (requires(JsonWriter json) { describe(json, value); }) {
      JsonWriter json;
      describe(json, value);
      return json.taken();
    } else {
      return value;
    }
  }
  static Json of(const Json& value) { return value; }
  template <typename Entry>
  static Json of(const std::optional<Entry>& entry) {
    return entry ? of(*entry) : Json();
  }
  template <typename Entry>
  static Json of(const std::vector<Entry>& entries) {
    Json list = Json::array();
    for (const Entry& entry : entries) list.push_back(of(entry));
    return list;
  }

  Json object_ = Json::object();
};

/// {"parsimony_report": 2, …}: the kind, its version, and the members of the report.
template <typename Report>
std::string document_of(const char* kind, int version, const Report& report) {
  JsonWriter json;
  json(kind, version);
  describe(json, report);
  return dumped(json.taken());
}

}  // namespace parsimony
