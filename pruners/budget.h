// How many channels of each group go, so that a request's budget is met. Counts only: a group
// always loses its lowest channels, so that a higher ratio removes a superset.
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
  /// each other the more careful one holds: round_to (rounds up what stays) before max_ratio before
  /// min_ratio.
  int removed(int wanted) const;
};

/// A group may lose between min_ratio and max_ratio of its channels, and keeps at least one.
Limits limits_of(const Request& request, int size);

/// A group as the allocator sees it.
struct Candidate {
  Limits limits;
  std::vector<double> score;  ///< per channel, comparable between groups
  std::vector<int> order;     ///< channels, the first to go first
};

/// Channels by ascending score; of equal ones the higher index goes first.
std::vector<int> removal_order(const Scores& scores);

/// Divides by the mean, so that layers of different scale compare. A group whose scores are all
/// zero keeps them.
std::vector<double> normalised(const Scores& scores);

/// Share of the budgeted quantity that is gone when candidate i has lost its counts[i] lowest
/// channels; 0..1, never falls when a count grows.
using Share = std::function<double(const std::vector<int>& counts)>;

struct Counts {
  std::vector<int> removed;  ///< per candidate
  double reached = 0;        ///< share of the budget that is gone
  bool feasible = true;      ///< false if the bounds do not allow the ratio
};

/// Counts for the candidates of one request.
///
/// Local channels: every group loses floor(ratio · size). Local parameters or MACs: every group
/// loses the same share of its channels, the smallest that reaches the ratio. Global: the channels
/// of all groups are ranked together and the lowest go until the ratio is reached, which for
/// channels is floor(ratio · all channels of the candidates).
/// `share` is asked only for parameters and MACs, about 32 times.
Counts choose_counts(const Request& request, std::span<const Candidate> candidates,
                     const Share& share);

}  // namespace parsimony
