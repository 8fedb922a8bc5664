// The multiple-choice knapsack: one option of every item, within a budget, with the highest total
// value.
#pragma once

#include <optional>
#include <vector>

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

}  // namespace parsimony
