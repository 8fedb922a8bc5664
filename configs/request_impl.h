// The part of a configuration that says how much goes, and how; shared by the file's defaults, its
// entries, their targets and the command line.
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
  std::string aligned_with;  ///< see ConfigEntry
  std::string block;         ///< the criterion that a block list means; may be empty
  std::set<std::string, std::less<>> keys;

  /// Is there a ratio, a threshold, an amount, or a layer to follow?
  bool says_how_much() const;
};

/// Where a key stands: "cnn.json: config_list[2]" and "scope" are "cnn.json: config_list[2].scope".
std::string place_of(std::string_view base, std::string_view key);

/// Reads the request keys of `object` over what `given` has already.
void read_request(const nlohmann::json& object, std::string_view base, GivenRequest& given);

/// Makes the criterion fit the granularity where none was given, and the ratio the criterion where
/// that has an N:M pattern.
/// @throws ConfigError for keys that contradict each other
void complete_request(GivenRequest& given, std::string_view base);

/// Reads target_names and target_settings of an entry: what they say of its weights goes over what
/// `given` has already. @throws UnsupportedError for targets that are no weights
void read_targets(const nlohmann::json& entry, std::string_view base, GivenRequest& given);

/// {"module_name": …, "target_name": "weight", "dims": [0]}; the module's name, empty for its own.
/// @throws UnsupportedError for what cannot be removed together
std::string read_align(const nlohmann::json& value, std::string_view place);

/// @throws UnsupportedError, saying why, for what does not multiply by the mask
void check_apply_method(const nlohmann::json& value, std::string_view place);

/// A word, or a list of sizes: what of a layer goes as one.
void read_granularity(const nlohmann::json& value, std::string_view place, GivenRequest& given);

/// "channels", or {"macs": 2e9}, {"params": "50%"}.
void read_budget(const nlohmann::json& value, std::string_view place, GivenRequest& given);

/// "channels", or "macs=2e9", "params=50%", as the command line spells it.
void parse_budget(std::string_view text, std::string_view place, GivenRequest& given);

std::string parse_criterion(const std::string& text, std::string_view place);
Scope parse_scope(std::string_view text, std::string_view place);

}  // namespace parsimony
