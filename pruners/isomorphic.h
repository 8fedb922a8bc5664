// Which groups lie in sub-graphs of the same shape, so that their scores compare.
#pragma once

#include <cstdint>
#include <vector>

#include "parsimony/masks/coupling.h"

namespace parsimony {

/// One hash per group, equal for isomorphic sub-graphs: the operators along which a group runs, the
/// weights that they read (role, axis, rank) and how they are connected. Sizes and the order of
/// nodes do not count.
///
/// A Weisfeiler-Lehman hash: node labels are refined by those of their neighbours, as often as the
/// sub-graph has nodes, at most 16 times.
/// @source Fang et al., Isomorphic Pruning for Vision Models, ECCV 2024,
/// https://arxiv.org/abs/2407.04616; Shervashidze et al., Weisfeiler-Lehman Graph Kernels, JMLR
/// 2011
PerGroup<uint64_t> subgraph_shapes(const Graph& graph, const Coupling& coupling);

}  // namespace parsimony
