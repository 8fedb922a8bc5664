// Depth pruning: removes residual blocks, chosen together with the widths of the rest.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "parsimony/api/prune.h"
#include "parsimony/api/prune_model.h"
#include "parsimony/graph/blocks.h"

namespace parsimony {

/// Parses "3", "25%" or "auto". @throws ConfigError naming `place`
DepthRequest parse_depth(std::string_view text, std::string_view place);

struct DepthPruning {
  Graph graph;      ///< without the blocks; `pruning.analysis` refers to it
  Pruning pruning;  ///< plan and costs of the whole network
  DepthReport report;
};

/// Describes the blocks that could be removed, without their influence. `sample` is that of
/// Analysis.
std::vector<BlockOutcome> describe(const Graph& graph, const Facts& sample,
                                   const std::vector<ResidualBlock>& blocks);

/// Removes the blocks of least influence, then prunes the rest like plan_pruning; the plan covers
/// both. `request.depth` is the number of blocks. Blocks with an excluded layer are kept. Ratios of
/// channels and weights refer to the rest; a budget of parameters or MACs refers to the whole
/// network.
///
/// kAuto plans without 0, 1, … blocks until removing blocks alone meets the budget; of the small
/// networks that meet it, the one with the smallest error is chosen.
///
/// @throws ConfigError if there are too few blocks, or no budget of parameters or MACs for kAuto;
/// UnsupportedError for latency budgets; otherwise as plan_pruning
DepthPruning plan_depth(const Graph& graph, const PruneRequest& request,
                        const PruneServices& services);

}  // namespace parsimony
