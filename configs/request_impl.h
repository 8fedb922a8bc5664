// The part of a configuration that says how much goes, and how; shared by the file's defaults, its
// entries, their targets and the command line.
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "parsimony/base/json_reader.h"
#include "parsimony/configs/config.h"
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

/// The elements of a list that is not empty; `what` they are, for the message to one who gives
/// none.
JsonReader::Items list_of(const JsonReader& value, const std::string& what);

/// The list and what stands beside it; in a recipe, `schedule` and other keys are the recipe's.
ConfigList config_of(const JsonReader& document, bool in_recipe);

/// Reads the request keys of `object` over what `given` has already; granularity too, unless it is
/// the network's.
void read_request(const JsonReader& object, GivenRequest& given, bool of_network = false);

/// Makes the criterion fit the granularity where none was given, and the ratio the criterion where
/// that has an N:M pattern.
/// @throws ConfigError for keys that contradict each other
void complete_request(GivenRequest& given, std::string_view base);

/// Reads target_names and target_settings of an entry: what they say of its weights goes over what
/// `given` has already. @throws UnsupportedError for targets that are no weights
void read_targets(const JsonReader& entry, GivenRequest& given);

/// {"module_name": …, "target_name": "weight", "dims": [0]}; the module's name, empty for its own.
/// @throws UnsupportedError for what cannot be removed together
std::string read_align(const JsonReader& value);

/// @throws UnsupportedError, saying why, for what does not multiply by the mask
void check_apply_method(const JsonReader& value);

/// A word, or a list of sizes: what of a layer goes as one.
void read_granularity(const JsonReader& value, GivenRequest& given);

/// "channels", or {"macs": 2e9}, {"params": "50%"}.
void read_budget(const JsonReader& value, GivenRequest& given);

/// "channels", or "macs=2e9", "params=50%", as the command line spells it.
void parse_budget(std::string_view text, std::string_view place, GivenRequest& given);

std::string parse_criterion(const std::string& text, std::string_view place);
Scope parse_scope(std::string_view text, std::string_view place);

}  // namespace parsimony
