// The part of a configuration that says how much goes, and how; shared by the file's defaults, its
// entries and the command line.
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "parsimony/configs/json_impl.h"
#include "parsimony/pruners/settings.h"

namespace parsimony {

inline constexpr int kMaxRoundTo = 65536;

/// A request together with the keys that were given for it.
struct GivenRequest {
  Request request;
  std::set<std::string, std::less<>> keys;

  bool has_ratio() const;
};

/// Where a key stands: "cnn.json: config_list[2]" and "scope" are "cnn.json: config_list[2].scope".
std::string place_of(std::string_view base, std::string_view key);

/// Reads the request keys of `object` over what `given` has already.
void read_request(const nlohmann::json& object, std::string_view base, GivenRequest& given);

/// @throws ConfigError for keys that contradict each other
void check_request(const GivenRequest& given, std::string_view base);

std::string parse_criterion(const std::string& text, std::string_view place);
Scope parse_scope(std::string_view text, std::string_view place);
Budget parse_budget(std::string_view text, std::string_view place);

}  // namespace parsimony
