// The config list: JSON in, settings per layer out.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "parsimony/graph/graph.h"
#include "parsimony/pruners/settings.h"

namespace parsimony {

/// One entry of the list, read but not yet matched with a network.
struct ConfigEntry {
  std::vector<std::string> op_types, op_names, op_names_re;
  std::vector<std::string> exclude_op_types, exclude_op_names, exclude_op_names_re;
  bool exclude = false;  ///< legacy: the entry's layers are left whole
  Request request;
  bool has_ratio = false;
  std::string place;  ///< "configs/cnn.json: config_list[2]", for messages
};

using ConfigList = std::vector<ConfigEntry>;

/// @throws IoError, ConfigError
ConfigList read_config(const std::string& path);
/// @throws ConfigError naming file, entry and key
ConfigList parse_config(std::string_view json, std::string_view file_name);

/// Matches the list with a network's layers. A later entry overrides an earlier one.
/// @throws ConfigError for a name or type that matches nothing, with near candidates
Settings resolve(const ConfigList& config, const Graph& graph);

}  // namespace parsimony
