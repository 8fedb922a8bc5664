// What the user asked of each layer, resolved from a config list or from the command line.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "parsimony/graph/graph.h"

namespace parsimony {

/// kIsomorphic ranks globally, but only among groups whose sub-graphs have the same shape.
/// @source Fang et al., Isomorphic Pruning for Vision Models, 2024
enum class Scope : uint8_t { kLocal, kGlobal, kIsomorphic };
/// kLatency: milliseconds of the whole network on this machine.
enum class Budget : uint8_t { kChannels, kParams, kMacs, kLatency };

/// How channels are chosen where a layer is to be pruned.
struct Request {
  std::string criterion = "l1";  ///< a name of the criterion table
  double ratio = 0;              ///< share to remove, 0 <= ratio < 1, of what `budget` counts
  /// What may remain of what `budget` counts, instead of a ratio: parameters, MACs, milliseconds.
  std::optional<double> amount = {};
  Scope scope = Scope::kLocal;
  Budget budget = Budget::kChannels;
  double min_ratio = 0;  ///< per group: at least this share of channels goes
  double max_ratio = 1;  ///< per group: at most this share of channels goes
  int round_to = 1;      ///< kept channels are a multiple of this, where the group is that large
  int entry = kNone;     ///< index of the config entry it came from
};

/// One layer's setting. A group is pruned only if all of its layers are kPruned.
struct LayerSetting {
  enum class State : uint8_t { kUnnamed, kExcluded, kPruned };
  State state = State::kUnnamed;
  int request = kNone;  ///< index into Settings::requests; layers that share one share its budget
};

struct Settings {
  std::vector<Request> requests;
  std::vector<LayerSetting> layers;  ///< per node of the graph; see Layers for which are layers
};

}  // namespace parsimony
