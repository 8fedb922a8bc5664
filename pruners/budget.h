// Budgets: how many channels each candidate loses so that a request's budget is met. Counts only: a
// candidate always loses its lowest-scoring channels.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "parsimony/pruners/allocate.h"

namespace parsimony {

/// A group may lose between min_ratio and max_ratio of its channels, and keeps at least
/// keep_at_least. The number kept is a multiple of round_to and of metric_blocks.
GroupLimits limits_of(const Request& request, int size);

/// Bounds of channels that are removed together: the stricter of each. Both have the same size.
GroupLimits stricter(const GroupLimits& a, const GroupLimits& b);

/// Channels by ascending score; of equal ones the higher index comes first. With `blocks` above 1,
/// every `blocks` consecutive channels come one from each of `blocks` equal parts.
std::vector<int> removal_order(const Scores& scores, int blocks = 1);

/// Divides by the mean, so that layers of different scale compare. A group whose scores are all
/// zero keeps them.
std::vector<double> normalised(const Scores& scores);

/// A function that tells how much of the budgeted quantity is left when candidate i has lost its
/// first counts[i] channels; never grows with a count.
using Remaining = std::function<double(const std::vector<int>& counts)>;

struct Counts {
  std::vector<int> removed;  ///< per candidate
  double reached = 0;        ///< channels, weights: the share removed
  double remaining = 0;      ///< parameters, MACs: the amount left
  bool feasible = true;      ///< false if the bounds do not allow the budget to be met
};

/// Counts for the candidates of one request without a network-wide budget.
///
/// Threshold: channels that score below it are removed. Local: every candidate loses floor(ratio ·
/// size). Global: the channels of all candidates are ranked together and the lowest are removed
/// until floor(ratio · all) is reached, in channels or in weights; candidates at their limit are
/// skipped. Isomorphic: the same within every class of equal shape. A higher ratio removes a
/// superset.
Counts choose_counts(const Request& request, std::span<const Candidate> candidates);

/// Counts for a network-wide budget: what is left does not exceed `most`, and no candidate could
/// get a channel back, within its bounds, without exceeding it.
///
/// First as little as possible is removed: the same share of every candidate (local), the lowest
/// channels of all (global, outputs), or the same share of the lowest of every class (isomorphic).
/// Then the best channels are restored as far as they fit. `remaining` is called about 32 times,
/// and once or twice for every candidate.
Counts fit_budget(const Request& request, std::span<const Candidate> candidates,
                  const Remaining& remaining, double most);

}  // namespace parsimony
