// What the widths of a candidate are worth, of 1 for all of its channels.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "parsimony/pruners/budget.h"

namespace parsimony {

/// Of what matters, the share that the best 0, 1, … channels of groups that lose the same ones
/// keep: 0..1, ascending; empty where that is not known.
using WorthFunction =
    std::function<std::vector<double>(std::span<const int> groups, const Candidate& candidate)>;

/// Sums of the scores of the best 0, 1, … channels, as shares of the sum of all. Where the scores
/// do not say, all channels count alike.
std::vector<double> score_shares(const Candidate& candidate);

/// Shares for all widths from those that are known, ascending: linear between them, 0 without
/// channels and 1 with all. What is kept never falls as a group grows.
std::vector<double> interpolated_shares(int size, std::span<const std::pair<int, double>> known);

/// What a width is worth beside others: ln of its share, which of many groups adds up to the
/// product of their shares. Finite where the share is 0.
double log_share(double share);

/// Scores that rank the channels of all candidates by what they are worth for what they cost: each
/// has the slope of the lower convex hull of −log_share over the channels that are gone, divided by
/// `cost`, a channel's of the budget. Taking the lowest first is the greedy solution of the
/// knapsack.
/// @source Sinha and Zoltners, The Multiple-Choice Knapsack Problem, 1979 (the hull)
std::vector<double> worth_scores(const Candidate& candidate, std::span<const double> shares,
                                 double cost);

/// Marks the candidate's best `width` channels as kept, the others as gone.
void keep_best(const Candidate& candidate, int width, std::vector<uint8_t>& keep);

}  // namespace parsimony
