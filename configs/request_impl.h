// The part of a configuration that says how much to prune, and how; shared by the file's defaults,
// its entries, their targets and the command line.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "parsimony/base/json_reader.h"
#include "parsimony/configs/config.h"
#include "parsimony/pruners/settings.h"

namespace parsimony {

inline constexpr int kMaxRoundTo = 65536;

/// A request together with the keys that were given.
struct GivenRequest {
  Request request;
  std::string aligned_with;  ///< see ConfigEntry
  std::string block;         ///< the criterion implied by a block list; may be empty
  std::set<std::string, std::less<>> keys;

  /// Is there a ratio, a threshold, an amount, or a layer to align with?
  bool says_how_much() const;
};

/// The elements of a non-empty list; `what` names them in the error message.
JsonReader::Items list_of(const JsonReader& value, const std::string& what);

/// The list and its sibling keys; in a recipe, `schedule` and other keys belong to the recipe.
ConfigList config_of(const JsonReader& document, bool in_recipe, bool needs_entries = true);

/// Reads the request keys of `object`, overriding those in `given`, including granularity unless it
/// is the network's.
void read_request(const JsonReader& object, GivenRequest& given, bool of_network = false);

/// Derives the criterion from the granularity if none was given, and the ratio from the criterion
/// if that has an N:M pattern.
/// @throws ConfigError for keys that contradict each other
void complete_request(GivenRequest& given, std::string_view base);

/// Reads target_names and target_settings of an entry: settings for its weights override those in
/// `given`. @throws UnsupportedError for targets that are not weights
void read_targets(const JsonReader& entry, GivenRequest& given);

/// {"module_name": …, "target_name": "weight", "dims": [0]}; the module's name, empty for its own.
/// @throws UnsupportedError for alignments that cannot be pruned together
std::string read_align(const JsonReader& value);

/// @throws UnsupportedError, with the reason, for methods that do not multiply by the mask
void check_apply_method(const JsonReader& value);

/// A name, or a list of sizes: what is removed as one unit.
void read_granularity(const JsonReader& value, GivenRequest& given);

/// Returns the ratio that is removed if a percentage, "40%", remains; empty outside (0%, 100%].
std::optional<double> removed_beside(std::string_view percentage);

/// "channels", or {"macs": 2e9}, {"params": "50%"}.
void read_budget(const JsonReader& value, GivenRequest& given);

/// "channels", or "macs=2e9", "params=50%", as on the command line.
void parse_budget(std::string_view text, std::string_view place, GivenRequest& given);

std::string parse_criterion(const std::string& text, std::string_view place);

/// Reads a name or, to be compared, several: "obs,fisher".
/// @throws ConfigError for unknown names, or several of which one scores single elements
void read_criterion(std::string_view text, std::string_view place, Request& request);
/// Likewise: "local,global".
void read_scope(std::string_view text, std::string_view place, Request& request);

// Settings for training and calibration, which are read and passed on.

/// {"schedule": "agp", "warmup_epochs": 1, "steps": 5, "epochs_between": 1}, or just the name.
ScheduleSetting read_schedule(const JsonReader& value);

/// {"data": "cifar10:DIR", "samples": 512}
CalibrationSetting read_calibration(const JsonReader& value);

/// "bn", or ["bias", "least-squares"].
std::vector<std::string> read_recover(const JsonReader& value);

}  // namespace parsimony
