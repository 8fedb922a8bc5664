// What a configuration asks of every layer, and which entry says so.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "parsimony/api/prune.h"

namespace parsimony::cli {

/// One layer's setting as it was resolved.
struct LayerRow {
  std::string layer;
  std::string op;
  std::vector<std::string> groups;  ///< whose channels the layer makes
  std::string state;                ///< "pruned", "excluded" or "not named"
  nlohmann::ordered_json setting;   ///< keys of the config list that count; empty if not pruned
  std::string entry;                ///< "config_list[2]"; empty if none names it
};

struct ConfigExplanation {
  std::vector<LayerRow> layers;    ///< in graph order
  std::vector<std::string> notes;  ///< groups that do not do what some of their layers ask
};

/// Couples the network anew, as the configuration asks. @throws as resolve() does
ConfigExplanation explain_config(const Graph& graph, const Analysis& analysis,
                                 const ConfigList& config, const PruneOptions& options);

/// A table, and the notes.
std::string to_text(const ConfigExplanation& explanation);

/// {"parsimony_explain": 1, "layers": […], "notes": […]}
std::string to_json(const ConfigExplanation& explanation);

}  // namespace parsimony::cli
