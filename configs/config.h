// The config list: JSON in, settings per layer out.
//
//   [ {"op_types": ["Conv2d", "Linear"], "sparse_ratio": 0.5},
//     {"op_names": ["fc"], "exclude": true} ]
//
// or, with defaults for all entries:
//
//   {"criterion": "l2", "scope": "global", "budget": "macs", "config_list": [ … ]}
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "parsimony/graph/graph.h"
#include "parsimony/masks/coupling.h"
#include "parsimony/pruners/settings.h"

namespace parsimony {

/// The place where an entry stands, for messages. Entries that ask for the same are equal wherever
/// they stand.
struct EntrySource {
  std::string place;  ///< "configs/cnn.json: config_list[2]"
  bool from_command_line = false;

  bool operator==(const EntrySource&) const { return true; }
};

/// One entry of the list, read but not yet matched with a network. It selects the layers that have
/// one of `op_types` and one of the names (listed or matched by a pattern), except those that an
/// `exclude_…` key matches; a key that is not given does not restrict.
struct ConfigEntry {
  std::vector<std::string> op_types, op_names, op_names_re;
  std::vector<std::string> op_partial_names;  ///< names that contain one of these
  std::vector<std::string> exclude_op_types, exclude_op_names, exclude_op_names_re;
  bool exclude = false;  ///< the selected layers are not pruned
  Request request;
  std::string aligned_with;  ///< name of the layer with which these are aligned; may be empty
  EntrySource source;

  bool operator==(const ConfigEntry&) const = default;
};

enum class PruningSchedule : uint8_t { kOneShot, kLinear, kAgp, kLottery, kAnnealing };

/// The pruning schedule, for training loops; see docs/guide/training.md.
struct ScheduleSetting {
  PruningSchedule schedule = PruningSchedule::kOneShot;
  int warmup_epochs = 1;   ///< before the first cut
  int steps = 1;           ///< linear, agp, lottery: in how many cuts
  int epochs_between = 1;  ///< linear, agp, lottery: of training after each cut except the last

  bool operator==(const ScheduleSetting&) const = default;
};

/// Data that runs through the network before or after the cut.
struct CalibrationSetting {
  std::string data;        ///< "cifar10:DIR"
  int samples = 256;       ///< the first samples of the training set
  std::string image = {};  ///< what is done to pictures: "resize=256,crop=224,bgr"

  bool operator==(const CalibrationSetting&) const = default;
};

struct ConfigList {
  std::vector<ConfigEntry> entries;
  std::optional<Granularity> granularity = {};  ///< empty if the file does not say
  bool force = false;  ///< also where less than a thousandth may remain: see check_shares
  /// Not used for planning, but by whoever carries it out.
  std::optional<ScheduleSetting> schedule = {};
  std::optional<CalibrationSetting> calibration = {};
  std::vector<std::string> recover = {};  ///< "bias", "bn", "least-squares", "finetune"; in order

  bool operator==(const ConfigList&) const = default;
};

/// @throws IoError, ConfigError, UnsupportedError
ConfigList read_config(const std::string& path);

/// Reads the text of a configuration; `file_name` is for messages.
/// @throws ConfigError naming file and line, or file, entry and key; UnsupportedError for NNI
/// features that are meaningless for channel pruning
/// @param needs_entries  refuse a text without `config_list`; else it may have other keys alone,
/// but
///     no defaults of entries
ConfigList parse_config(std::string_view json, std::string_view file_name,
                        bool needs_entries = true);

/// The text that `parse_config` reads as an equal list; without entries, if it needs none.
std::string to_json(const ConfigList& config);
/// An object with the keys that an entry has for it; without those that are as by default, except
/// for the criterion and how much to prune.
std::string to_json(const Request& request);

/// Returns whether a pruning entry names several criteria or scopes, which are compared.
bool has_choice(const ConfigList& config);

/// "channel", "head", "head_dim", "group" or "expert". @throws ConfigError
Granularity parse_granularity(std::string_view text, std::string_view place);

/// Its name in configurations.
std::string_view name_of(Scope scope);
std::string_view name_of(Budget budget);
std::string_view name_of(Target target);

/// "generic", "x86-avx2", "x86-avx512", "arm-neon" or "cuda-tensorcore". @throws ConfigError
Target parse_target(std::string_view text, std::string_view place);

/// A configuration of one entry, as given on the command line.
struct Shorthand {
  std::string criterion = "l1";
  double ratio = 0;
  std::vector<std::string> op_types = {};  ///< all layers if empty
  std::vector<std::string> exclude = {};   ///< names of layers
  std::string scope = "local";             ///< as of Request, or several: "local,global"
  /// The quantity `ratio` refers to: "channels", "params", …; or an absolute amount: "macs=2e9".
  std::string budget = "channels";
  int round_to = 1;
  bool round_to_target = false;  ///< in place of `round_to`: a multiple that suits the target
  std::string target = {};       ///< that is rounded to; empty: none
  bool force = false;            ///< as of ConfigList
};

/// @throws ConfigError naming the option
ConfigList from_shorthand(const Shorthand& shorthand);

/// Matches the list with a network's layers. A later entry overrides an earlier one. A layer that
/// only `exclude_…` keys match is excluded.
///
/// A layer can be named by its node, the node's first output, its weight tensor, or its torch
/// module: the tensor's name without ".weight", or the path that torch's exporter wrote into the
/// node's name ("/layer1/layer1.0/conv1/Conv" is "layer1.0.conv1"). In a name that no layer has,
/// `*` stands for any characters and `?` for one. Regular expressions are RE2's (Perl's without
/// back-references and look-around) and match from the start of a name, as Python's re.match does.
/// @throws ConfigError for a name, type or pattern that matches nothing, with close matches
Settings resolve(const ConfigList& config, const Graph& graph);

}  // namespace parsimony
