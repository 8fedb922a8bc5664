// Block influence: how much each residual block changes its input.
#pragma once

#include <vector>

#include "parsimony/graph/blocks.h"
#include "parsimony/training/statistics/batches.h"

namespace parsimony::training {

/// One pass over the data; sums only. Per block
///
///     1 - mean over samples and positions of  x·y / (‖x‖ ‖y‖)
///
/// with x and y the block's input and output as vectors over its channel axis; 0 for a block that
/// only changes lengths. If only Relu reads y, negative parts are ignored in both. Two zero vectors
/// count as equal; a zero vector and another one as orthogonal.
/// @returns for each block a number in 0..2, infinite if it was not computed
/// @throws as Measuring; ConfigError if there is no batch
/// @source Men et al., ShortGPT: Layers in Large Language Models are More Redundant Than You
/// Expect, 2024, arXiv 2403.03853, equation 1
std::vector<double> block_influences(const Graph& graph, const std::vector<ResidualBlock>& blocks,
                                     const Batches& batches);

}  // namespace parsimony::training
