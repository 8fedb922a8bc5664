// Whole residual blocks that go, chosen together with the widths of what stays.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "parsimony/api/prune.h"
#include "parsimony/graph/blocks.h"
#include "parsimony/speedup/depth.h"

namespace parsimony {

/// How many blocks go.
struct DepthRequest {
  enum class Kind : uint8_t {
    kCount,  ///< so many
    kShare,  ///< floor(share · all)
    kAuto,   ///< as many as leave the smallest error under the configuration's budget
  };
  Kind kind = Kind::kCount;
  int64_t count = 0;
  double share = 0;  ///< 0..1
};

/// "3", "25%" or "auto". @throws ConfigError naming `place`
DepthRequest parse_depth(std::string_view text, std::string_view place);

/// Runs data through a network: for each block, how much it changes what flows through it.
using BlockInfluence =
    std::function<std::vector<double>(const Graph&, const std::vector<ResidualBlock>&)>;

/// How far the small network that a plan makes is from the original; 0: not at all.
using PlanError = std::function<double(const Plan&)>;

struct DepthOptions {
  DepthRequest request;
  BlockInfluence influence;  ///< what ranks blocks; those of least influence go first
  PlanError error;           ///< for kAuto
  std::function<void(std::string_view stage)> progress = {};  ///< told what begins; may be empty
};

struct DepthPruning {
  Graph graph;      ///< without the blocks; what `pruning.analysis` speaks of
  Pruning pruning;  ///< its plan and costs are the whole network's
  DepthReport report;
};

/// The blocks that could go, without their influence. `sample` as in Analysis.
std::vector<BlockOutcome> describe(const Graph& graph, const Facts& sample,
                                   const std::vector<ResidualBlock>& blocks);

/// Removes the blocks of least influence, then couples and cuts what remains as plan_pruning does:
/// one plan has both. Blocks with an excluded layer stay. Ratios of channels and weights are of
/// what remains; a budget of parameters or MACs is one of the whole network.
///
/// kAuto plans with 0, 1, … blocks less, as long as these alone do not meet the budget, and once
/// beyond; of the small networks that meet it, the one of least error is taken.
///
/// @throws ConfigError if there are fewer blocks than are to go, or for kAuto no budget of
/// parameters or MACs; UnsupportedError for budgets of milliseconds; else as plan_pruning
DepthPruning plan_depth(const Graph& graph, const ConfigList& config, const PruneOptions& options,
                        const DepthOptions& depth);

}  // namespace parsimony
