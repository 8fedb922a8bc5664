// A criterion judges channels: a pure function from a group to one score per channel.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "parsimony/graph/graph.h"
#include "parsimony/masks/coupling.h"

namespace parsimony {

struct CriterionOptions {
  uint64_t seed = 0;  ///< for criteria that draw at random
};

/// One score per channel of the group; the lowest go first.
using Scores = std::vector<double>;

struct Criterion {
  std::string_view name;  ///< as the command line and the config list spell it
  Scores (*score)(const Graph& graph, const Group& group, const CriterionOptions& options);
};

/// Every criterion, one row each.
std::span<const Criterion> criterion_table();

/// @throws ConfigError with near candidates
const Criterion& find_criterion(std::string_view name);

}  // namespace parsimony
