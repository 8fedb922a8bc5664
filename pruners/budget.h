// How many channels of each candidate go, so that a request's budget is met. Counts only: a
// candidate always loses its lowest channels.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "parsimony/pruners/criterion.h"
#include "parsimony/pruners/settings.h"

namespace parsimony {

/// Bounds of one group's removal.
struct Limits {
  int size = 0;
  int least = 0;     ///< channels that go in any case
  int most = 0;      ///< channels that may go; less than size
  int round_to = 1;  ///< what stays is a multiple of this, or everything

  /// Channels that go where `wanted` should; grows with `wanted`. Of the bounds that contradict
  /// each other the more careful one holds: round_to (rounds up what stays) before max_ratio and
  /// keep_at_least before min_ratio.
  int removed(int wanted) const;
  /// The largest number of removed channels below `count`; `count` where there is none.
  int fewer(int count) const;
};

/// A group may lose between min_ratio and max_ratio of its channels, and keeps keep_at_least. What
/// stays is a multiple of round_to and of metric_blocks.
Limits limits_of(const Request& request, int size);

/// Bounds of channels that go together: the more careful of each. Both are of one size.
Limits stricter(const Limits& a, const Limits& b);

/// What the allocator decides about as one: a group, or several that lose the same channels.
struct Candidate {
  Limits limits;
  std::vector<double> score;  ///< per channel, comparable between candidates
  std::vector<int> order;     ///< channels, the first to go first
  int64_t weight = 1;         ///< elements of the producing matrices per channel: Budget::kWeights
  uint64_t shape = 0;         ///< of its sub-graph: Scope::kIsomorphic ranks within equal ones
  int below = 0;              ///< channels that score less than the request's threshold
};

/// Channels by ascending score; of equal ones the higher index goes first. With `blocks` above 1,
/// each run of so many takes one channel from every one of `blocks` equal parts.
std::vector<int> removal_order(const Scores& scores, int blocks = 1);

/// Divides by the mean, so that layers of different scale compare. A group whose scores are all
/// zero keeps them.
std::vector<double> normalised(const Scores& scores);

/// How much of the budgeted quantity is left when candidate i has lost its counts[i] first
/// channels; never grows with a count.
using Remaining = std::function<double(const std::vector<int>& counts)>;

struct Counts {
  std::vector<int> removed;  ///< per candidate
  double reached = 0;        ///< channels, weights: the share that is gone
  double remaining = 0;      ///< parameters, MACs: what is left
  bool feasible = true;      ///< false if the bounds do not allow what was asked for
};

/// Counts for the candidates of one request, without a budget of the whole network.
///
/// Threshold: what scores below it goes. Local: every candidate loses floor(ratio · size). Global:
/// the channels of all candidates are ranked together and the lowest go until floor(ratio · all) is
/// reached, of channels or of their weights; candidates that are at their limit are passed over.
/// Isomorphic: the same within every class of equal shape.
/// A higher ratio removes a superset.
Counts choose_counts(const Request& request, std::span<const Candidate> candidates);

/// Counts for a budget of the whole network: what is left is not above `most`, and no candidate
/// could get a channel back, within its bounds, without exceeding it.
///
/// First every candidate loses the same share of its channels (local), the lowest of all go
/// (global, outputs), or the same share of every class, its lowest (isomorphic): as little as fits.
/// Then the best channels come back as far as they fit. `remaining` is asked about 32 times, and
/// once or twice for every candidate.
Counts fit_budget(const Request& request, std::span<const Candidate> candidates,
                  const Remaining& remaining, double most);

}  // namespace parsimony
