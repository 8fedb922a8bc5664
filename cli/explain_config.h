// The setting of every layer, and the config entry it comes from.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "parsimony/api/prune.h"

namespace parsimony::cli {

/// The resolved setting of one layer.
struct LayerRow {
  std::string layer;
  std::string op;
  std::vector<std::string> groups;  ///< whose channels the layer produces
  std::string state;                ///< "pruned", "excluded" or "not named"
  nlohmann::ordered_json setting;   ///< effective keys of the config list; empty if not pruned
  std::string entry;                ///< "config_list[2]"; empty if none names it
};

struct ConfigExplanation {
  std::vector<LayerRow> layers;    ///< in graph order
  std::vector<std::string> notes;  ///< groups that deviate from some of their layers' settings
};

/// Solves the coupling again with the configuration's options. @throws as resolve() does
ConfigExplanation explain_config(const Graph& graph, const Analysis& analysis,
                                 const ConfigList& config, const PruneOptions& options);

/// A table, and the notes.
std::string to_text(const ConfigExplanation& explanation);

/// {"parsimony_explain": 1, "layers": […], "notes": […]}
std::string to_json(const ConfigExplanation& explanation);

}  // namespace parsimony::cli
