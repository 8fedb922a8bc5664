// How much each residual block of a network changes what flows through it.
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
/// changes lengths only. Where nothing but Relu reads y, its negative part says nothing, and both
/// are taken without theirs. Two zero vectors are alike; a zero vector and another one are
/// orthogonal.
/// @returns for each block a number in 0..2, infinite where it was not computed
/// @throws as Measuring; ConfigError if there is not a single batch
/// @source Men et al., ShortGPT: Layers in Large Language Models are More Redundant Than You
/// Expect, 2024, arXiv 2403.03853, equation 1
std::vector<double> block_influences(const Graph& graph, const std::vector<ResidualBlock>& blocks,
                                     const Batches& batches);

}  // namespace parsimony::training
