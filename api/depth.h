// Whole residual blocks that go, chosen together with the widths of what stays.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "parsimony/api/prune.h"
#include "parsimony/graph/blocks.h"
#include "parsimony/speedup/depth.h"

namespace parsimony {

/// "3", "25%" or "auto". @throws ConfigError naming `place`
DepthRequest parse_depth(std::string_view text, std::string_view place);

struct DepthPruning {
  Graph graph;      ///< without the blocks; what `pruning.analysis` speaks of
  Pruning pruning;  ///< its plan and costs are the whole network's
  DepthReport report;
};

/// The blocks that could go, without their influence. `sample` as in Analysis.
std::vector<BlockOutcome> describe(const Graph& graph, const Facts& sample,
                                   const std::vector<ResidualBlock>& blocks);

/// The network without some of its blocks. @returns it with the numbers that nodes now have, kNone
/// for those that went
std::pair<Graph, IdVector<NodeId, NodeId>> without_blocks(const Graph& graph,
                                                          const std::vector<PlanBlock>& blocks);

/// Removes the blocks of least influence, then couples and cuts what remains as plan_pruning does:
/// one plan has both. `options.depth` says how many. Blocks with an excluded layer stay. Ratios of
/// channels and weights are of what remains; a budget of parameters or MACs is one of the whole
/// network.
///
/// kAuto plans with 0, 1, … blocks less, as long as these alone do not meet the budget, and once
/// beyond; of the small networks that meet it, the one of least error is taken.
///
/// @throws ConfigError if there are fewer blocks than are to go, or for kAuto no budget of
/// parameters or MACs; UnsupportedError for budgets of milliseconds; else as plan_pruning
DepthPruning plan_depth(const Graph& graph, const ConfigList& config, const PruneOptions& options);

}  // namespace parsimony
