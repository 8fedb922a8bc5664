// Units with their scores: what a budget is allocated to, in multiples that the hardware computes
// well, and which of them are alike.
#pragma once

#include <cstdint>
#include <vector>

#include "parsimony/graph/graph.h"
#include "parsimony/masks/coupling.h"
#include "parsimony/pruners/budget.h"
#include "parsimony/pruners/settings.h"
#include "parsimony/pruners/units.h"

namespace parsimony {

/// Returns the number of channels in a block of the target's kernels, given the type of the weights
/// that produce the group; less where a channel is several elements of the axis, and halved until
/// the group has two blocks.
///
/// x86: a vector of float32, which is also a block of channels in the layouts of oneDNN and ONNX
/// Runtime. Arm: the columns of XNNPACK's kernels for matrix products. Tensor cores: 16 bytes, 8
/// float16 or 16 int8.
/// @source oneDNN, "Understanding Memory Formats"; onnxruntime, MlasNchwcGetBlockSize; XNNPACK,
/// src/f32-gemm and src/qs8-gemm; NVIDIA, "Matrix Multiplication Background", 2023
int multiple_for(Target target, const Graph& graph, const Group& group);

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

/// The scored units of a network, before a budget is applied.
struct Scored {
  std::vector<Unit> units;
  std::vector<Candidate> candidates;  ///< parallel to units
  /// Per group and channel, the rank in the order in which a growing ratio removes the channels of
  /// all groups: if a dimension would be empty its last one is restored, so that a higher ratio
  /// restores no other. Empty for a group that is in no unit.
  PerGroup<std::vector<double>> ranks;
  std::vector<Conflict> conflicts;
};

/// Resolves the layers' settings to units and scores them. A request for in_channels is scored by
/// the slices of the layers that read the channels.
Scored score_units(const Graph& graph, const Coupling& coupling, const Settings& settings,
                   const CriterionOptions& options);

/// Elements of the matrices that produce one channel of a group, on average.
int64_t weights_per_channel(const Graph& graph, const Group& group);

}  // namespace parsimony
