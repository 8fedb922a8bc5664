// A plan, replayed on the checkpoint of its network.
#pragma once

#include <string>
#include <vector>

#include "parsimony/checkpoints/checkpoint.h"
#include "parsimony/checkpoints/match.h"
#include "parsimony/graph/graph.h"
#include "parsimony/speedup/plan.h"

namespace parsimony {

/// What was cut, for reports.
struct CheckpointCut {
  std::vector<std::string> copies;  ///< prefixes of the copies of the network
  int64_t tensors = 0;              ///< of the copies
  int64_t states = 0;               ///< of optimizers
  std::vector<std::string> left;  ///< what the plan names and the checkpoint has not, with reasons
};

/// Cuts every copy of the network, and the states of optimizers with it: tensors of a parameter's
/// shape, and factored second moments. Parameters of an optimizer are numbered in the order of
/// `param_groups`; it is found by `param_names`, or if the shapes of all states fit the network's
/// parameters in their own order, or matrices before vectors.
///
/// The elements that the plan updates (constants folded, weights recovered) are assigned to the
/// copies whose elements are those of the model's file.
///
/// @throws UnsupportedError if the order of an optimizer's parameters cannot be known, if a
/// tensor's shape is fixed, or, with `strict`, if anything is left
CheckpointCut cut_checkpoint(const Plan& plan, const CheckpointMatch& match, bool strict,
                             Checkpoint& checkpoint);

}  // namespace parsimony
