// How many channels of each candidate are removed so that a request's budget is met. Counts only: a
// candidate always loses its lowest-scoring channels.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "parsimony/pruners/criterion.h"
#include "parsimony/pruners/settings.h"

namespace parsimony {

/// Bounds of one group's removal.
struct GroupLimits {
  int size = 0;
  int least = 0;     ///< channels that are removed in any case
  int most = 0;      ///< channels that may be removed; less than size
  int round_to = 1;  ///< the number kept is a multiple of this, or everything

  /// How many channels are removed if `wanted` are asked for; monotonic in `wanted`. Where bounds
  /// contradict each other the more conservative one wins: round_to (which rounds up the number
  /// kept), then max_ratio and keep_at_least, then min_ratio.
  int removed(int wanted) const;
  /// The largest allowed number of removed channels below `count`; `count` if there is none.
  int fewer(int count) const;
};

/// A group may lose between min_ratio and max_ratio of its channels, and keeps at least
/// keep_at_least. The number kept is a multiple of round_to and of metric_blocks.
GroupLimits limits_of(const Request& request, int size);

/// Bounds of channels that are removed together: the stricter of each. Both have the same size.
GroupLimits stricter(const GroupLimits& a, const GroupLimits& b);

/// What the allocator decides about: a group, or several that lose the same channels.
struct Candidate {
  GroupLimits limits;
  std::vector<double> score;  ///< per channel, comparable between candidates
  std::vector<int> order;     ///< channels in order of removal
  int64_t weight = 1;         ///< elements of the producing matrices per channel: Budget::kWeights
  /// Hash of its sub-graph: Scope::kIsomorphic ranks candidates with equal ones together.
  uint64_t shape = 0;
  int below = 0;  ///< channels that score less than the request's threshold
};

/// The share of the total importance that the best 0, 1, … channels of groups that lose the same
/// ones retain: 0..1, ascending; empty if unknown.
using ImportanceCurves =
    std::function<std::vector<double>(std::span<const GroupId> groups, const Candidate& candidate)>;

/// Channels by ascending score; of equal ones the higher index comes first. With `blocks` above 1,
/// every `blocks` consecutive channels come one from each of `blocks` equal parts.
std::vector<int> removal_order(const Scores& scores, int blocks = 1);

/// Divides by the mean, so that layers of different scale compare. A group whose scores are all
/// zero keeps them.
std::vector<double> normalised(const Scores& scores);

/// How much of the budgeted quantity is left when candidate i has lost its first counts[i]
/// channels; never grows with a count.
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
