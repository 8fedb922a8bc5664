// A plan, replayed on the checkpoint of its network.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "parsimony/checkpoints/checkpoint.h"
#include "parsimony/checkpoints/match.h"
#include "parsimony/graph/graph.h"
#include "parsimony/speedup/plan.h"

namespace parsimony {

/// The outcome for one tensor of the checkpoint.
struct TensorOutcome {
  std::string tensor;       ///< its path, joined by '/'
  std::string weight = {};  ///< of the network; empty: none
  /// The way the weight was recognised, or the tensor's relation to it: "elements, transposed",
  /// "low-rank factor", "optimizer state"; empty: nothing is known of it
  std::string matched = {};
  Shape before = {};
  Shape after = {};
  std::string why_left = {};  ///< where the plan or its module would have had it cut

  bool operator==(const TensorOutcome&) const = default;
};

/// A summary of what was cut, for reports.
struct CheckpointCut {
  std::vector<std::string> copies;  ///< prefixes of the copies of the network
  int64_t tensors = 0;              ///< of the copies
  int64_t states = 0;               ///< of optimizers
  /// Tensors that the plan names and the checkpoint lacks, and uncut tensors that have a size that
  /// was cut and lie in a module with a cut weight; with reasons.
  std::vector<std::string> left;
  std::vector<TensorOutcome> outcomes;  ///< of every tensor, in the order of the file
};

/// Finds the plan's tensors by their names alone, as in a checkpoint of the module that the plan
/// was made from; each prefix under which all of them lie is a copy. Returns empty if there is
/// none.
std::optional<CheckpointMatch> match_names(const Plan& plan, const Checkpoint& checkpoint);

/// Cuts every copy of the network, what hangs on its weights, and the states of optimizers. The
/// kept part of a normalised weight stays what it was: its magnitude or singular vector is scaled.
///
/// A weight that the checkpoint has in one of several places is cut if all of them are to be cut
/// alike; so are the states of a parameter that may be one of several. Otherwise nothing is cut:
/// a checkpoint that is cut by the indices of another layer loads and is wrong. What it lacks is
/// listed.
///
/// The elements that the plan updates (constants folded, weights recovered) are assigned to the
/// copies whose elements are those of the model's file.
///
/// @throws UnsupportedError if a weight or the order of an optimizer's parameters cannot be known,
/// if weights that are one tensor would be cut differently, if a tensor's shape is fixed, or, with
/// `strict`, if anything is left
CheckpointCut cut_checkpoint(const Plan& plan, const CheckpointMatch& match, bool strict,
                             Checkpoint& checkpoint);

}  // namespace parsimony
