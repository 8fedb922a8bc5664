// Functions of the criterion table, one file each.
#pragma once

#include "parsimony/pruners/criterion.h"

namespace parsimony::criteria {

/// Sum of magnitudes: score[c] = Σ |w| over the slices of channel c, in the matrices that produce
/// it.
/// @source Li et al., Pruning Filters for Efficient ConvNets, ICLR 2017,
/// https://arxiv.org/abs/1608.08710
Scores l1(const Graph& graph, const Group& group, const CriterionOptions& options);

/// Euclidean norm: score[c] = √(Σ w²) over the slices of channel c, in the matrices that produce
/// it.
/// @source NNI 3.0, L2NormPruner
Scores l2(const Graph& graph, const Group& group, const CriterionOptions& options);

/// Uniform in [0, 1), drawn from the seed and the group's id alone: groups may be scored in any
/// order.
Scores random(const Graph& graph, const Group& group, const CriterionOptions& options);

}  // namespace parsimony::criteria
