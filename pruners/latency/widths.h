// Which widths retain most of the importance within a time budget.
#pragma once

#include <span>
#include <vector>

#include "parsimony/pruners/importance.h"
#include "parsimony/pruners/latency/model.h"

namespace parsimony {

/// Groups of the coupling that may shrink and lose the same channels.
struct WidthCandidate {
  std::vector<GroupId> groups;
  Candidate candidate;
  int layers = 1;  ///< that produce these channels
  /// Of the importance that the best 0, 1, … channels retain, see ImportanceCurves.
  std::vector<double> curve = {};
};

struct WidthChoice {
  PerGroup<int> kept;
  double seconds = 0;    ///< as the model predicts
  double value = 0;      ///< Σ over the candidates of layers · ln(share retained)
  bool feasible = true;  ///< false if even the narrowest widths exceed the budget
};

/// Chooses how many channels each candidate keeps (its highest-scoring ones), so that the model
/// predicts at most `seconds` and the value is as high as possible. The value is the logarithm of
/// the product, over all layers, of the share of importance that a layer retains: what a layer
/// loses is lost to all layers after it, this many small losses weigh less than one that leaves a
/// layer next to nothing. `dense` is what every group keeps initially; groups that are not
/// candidates keep that.
///
/// The cost of a layer depends on its input and output width, so the costs of the groups are not
/// additive. The budget is lowered in steps from the dense network's time; in each step costs are
/// linearised around the last step's widths, from which a group may move by a fifth of its
/// channels, and a multiple-choice knapsack is solved. Finally single groups and pairs are moved,
/// at the model's exact costs, as long as that helps.
WidthChoice choose_widths(const LatencyModel& model, std::span<const WidthCandidate> candidates,
                          const PerGroup<int>& dense, double seconds);

}  // namespace parsimony
