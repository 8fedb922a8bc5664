// Depth pruning: removes residual blocks, chosen together with the widths of the rest.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "parsimony/api/prune.h"
#include "parsimony/api/prune_model.h"
#include "parsimony/graph/blocks.h"

namespace parsimony {

/// "3", "25%" or "auto". @throws ConfigError naming `place`
DepthRequest parse_depth(std::string_view text, std::string_view place);

struct DepthPruning {
  Graph graph;      ///< without the blocks; `pruning.analysis` refers to it
  Pruning pruning;  ///< plan and costs of the whole network
  DepthReport report;
};

/// The blocks that could be removed, without their influence. `sample` as in Analysis.
std::vector<BlockOutcome> describe(const Graph& graph, const Facts& sample,
                                   const std::vector<ResidualBlock>& blocks);

/// The network without some of its blocks. @returns it with the new ids of nodes, kNone for removed
/// ones
std::pair<Graph, IdVector<NodeId, NodeId>> without_blocks(const Graph& graph,
                                                          const std::vector<PlanBlock>& blocks);

/// Removes the blocks of least influence, then prunes the rest like plan_pruning; one plan has
/// both. `request.depth` says how many. Blocks with an excluded layer are kept. Ratios of channels
/// and weights refer to the rest; a budget of parameters or MACs refers to the whole network.
///
/// kAuto plans without 0, 1, … blocks until removing blocks alone meets the budget; of the small
/// networks that meet it, the one with the smallest error is chosen.
///
/// @throws ConfigError if there are too few blocks, or no budget of parameters or MACs for kAuto;
/// UnsupportedError for latency budgets; otherwise as plan_pruning
DepthPruning plan_depth(const Graph& graph, const PruneRequest& request,
                        const PruneServices& services);

}  // namespace parsimony
