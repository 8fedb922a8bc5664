// What the tables of settings say, for the files that are made of them.
#pragma once

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "parsimony/configs/fields.h"

namespace parsimony::test {

/// As a schema of JSON describes one member.
template <typename Owner>
nlohmann::ordered_json property(const Field<Owner>& field) {
  using Names = std::vector<std::string>;
  nlohmann::ordered_json json;
  const Owner usual;
  const auto list = [&](const char* of) {
    json["type"] = "array";
    json["items"]["type"] = of;
  };
  const auto number = [&](bool integer) {
    const Interval& in = field.interval;
    json["type"] = integer ? "integer" : "number";
    json[in.with_lowest ? "minimum" : "exclusiveMinimum"] = static_cast<int>(in.lowest);
    if (integer) json["maximum"] = std::numeric_limits<int>::max();
    if (in.highest < std::numeric_limits<int>::max())
      json["maximum"] = static_cast<int>(in.highest);
  };
  const auto describe = [&](const auto& member) {
    using Pointer = std::decay_t<decltype(member)>;
    if constexpr (std::is_same_v<Pointer, WordMember<Owner>>) {
      json["enum"] = Names(member.words.begin(), member.words.end());
    } else if constexpr (std::is_same_v<Pointer, FlagMember<Owner>> ||
                         std::is_same_v<Pointer, bool Owner::*>) {
      json["type"] = "boolean";
    } else if constexpr (std::is_same_v<Pointer, TextMember<Owner>>) {
      json["type"] = {"string", "number"};
    } else if constexpr (std::is_same_v<Pointer, std::string Owner::*>) {
      json["type"] = "string";
    } else if constexpr (std::is_same_v<Pointer, TextsMember<Owner>> ||
                         std::is_same_v<Pointer, std::vector<std::string> Owner::*>) {
      list("string");
    } else if constexpr (std::is_same_v<Pointer, std::vector<double> Owner::*>) {
      list("number");
      if (!field.interval.with_lowest) json["items"]["exclusiveMinimum"] = field.interval.lowest;
    } else {
      number(!std::is_same_v<Pointer, double Owner::*> &&
             !std::is_same_v<Pointer, std::optional<double> Owner::*>);
    }
  };
  std::visit(describe, field.member);
  const std::string value = json_value(field, usual);
  if (!value.empty()) {
    json["default"] = nlohmann::json::parse(value);
  } else if (json.value("type", nlohmann::ordered_json()) == "string") {
    json["default"] = "";
  } else if (json.value("type", nlohmann::ordered_json()) == "boolean") {
    json["default"] = false;
  } else if (json.contains("items")) {
    json["default"] = nlohmann::json::array();
  }
  json["description"] = help_of(field);
  return json;
}

}  // namespace parsimony::test
