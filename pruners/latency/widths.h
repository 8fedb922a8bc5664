// Which widths keep most of what matters within a time.
#pragma once

#include <span>
#include <vector>

#include "parsimony/pruners/latency/model.h"
#include "parsimony/pruners/worth.h"

namespace parsimony {

/// Groups of the coupling that may shrink, and lose the same channels.
struct WidthCandidate {
  std::vector<int> groups;
  Candidate candidate;
  int layers = 1;                   ///< whose output these channels are
  std::vector<double> shares = {};  ///< that the best 0, 1, … channels keep, see WorthFunction
};

struct WidthChoice {
  std::vector<int> kept;  ///< per group of the coupling
  double seconds = 0;     ///< as the model predicts
  double value = 0;       ///< Σ over the candidates of layers · ln(share that is kept)
  bool feasible = true;   ///< false: even the narrowest widths take longer than asked
};

/// Chooses how many channels each candidate keeps, those with the highest scores, so that the model
/// predicts at most `seconds` and the value is the highest that is found. The value is the
/// logarithm of the product, over all layers, of the share that a layer keeps: what a layer loses
/// is lost to all behind it, so that many small losses weigh less than one that leaves a layer next
/// to nothing. `dense` is what every group keeps at first; groups that are no candidates keep that.
///
/// What a layer costs depends on the widths on both its sides, so the costs of the groups do not
/// add up. The budget goes down in steps from what the dense network takes; in each, costs are
/// taken as additive around the last step's widths, from which a group may move by a fifth of its
/// channels, and a multiple-choice knapsack is solved. At the end, single groups and pairs move as
/// long as that helps, at the model's own costs.
WidthChoice choose_widths(const LatencyModel& model, std::span<const WidthCandidate> candidates,
                          const std::vector<int>& dense, double seconds);

}  // namespace parsimony
