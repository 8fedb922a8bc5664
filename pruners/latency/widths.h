// Choice of the widths that retain most of the importance within a time budget: a multiple-choice
// knapsack, one option of every item.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "parsimony/pruners/importance.h"
#include "parsimony/pruners/latency/model.h"

namespace parsimony {

struct KnapsackOption {
  double cost = 0;  ///< in the budget's unit; may be negative
  double value = 0;
};

/// Index of the option chosen for each item, such that the costs do not exceed `budget` and the sum
/// of values is maximal; empty if even the cheapest options exceed it. Exact while no more than
/// 4,096 partial sums stay undominated; beyond that sums that lie within a 4,096th of the budget's
/// range count as one.
///
///     best_options({{{1, 2}, {3, 5}}, {{0, 0}, {2, 4}}}, 3) is {0, 1}
///
/// Time grows with items · options · 4,096.
/// @source Dudziński and Walukiewicz, "Exact methods for the knapsack problem", 1987 (dynamic
/// programming with dominance)
std::optional<std::vector<int>> best_options(const std::vector<std::vector<KnapsackOption>>& items,
                                             double budget);

/// Groups of the coupling that may shrink and lose the same channels.
struct WidthCandidate {
  std::vector<GroupId> groups;
  Candidate candidate;
  int layers = 1;  ///< that produce these channels
  /// The importance that the best 0, 1, … channels retain, see ImportanceCurves.
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
