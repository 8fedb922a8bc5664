// The predicted latency of a network as a function of how many channels each group keeps: the
// times of its subgraphs, measured at some widths, and the widths that a device computes well.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "parsimony/base/ranges.h"
#include "parsimony/masks/coupling.h"
#include "parsimony/pruners/latency/subgraphs.h"
#include "parsimony/pruners/latency/table.h"

namespace parsimony {

/// Widths to measure first along an axis of `size`: 1, the quarters, all.
std::vector<int> first_widths(int size);

/// The most informative width to measure next, given times at ascending `widths`: the middle of the
/// interval over which they change most. 0 if no interval is wider than 1 or none changes by more
/// than 3% of the longest time.
int next_width(std::span<const int> widths, std::span<const double> seconds);

/// Sums the tables of a network's subgraphs. A subgraph without a table costs nothing.
class LatencyModel {
 public:
  LatencyModel(const Coupling& coupling, std::span<const Subgraph> subgraphs,
               const LatencyTables& tables);

  /// Seconds if group g keeps kept[g] channels.
  double seconds(const PerGroup<int>& kept) const;

  /// The difference to seconds(kept) if each of `groups` keeps `count` instead.
  double change(const PerGroup<int>& kept, std::span<const GroupId> groups, int count) const;

 private:
  /// Width of an axis: indices that are always kept, and this many for each channel of a group.
  struct Width {
    double pinned = 0;
    std::vector<std::pair<GroupId, double>> groups;
  };
  struct Term {
    LatencyTable table;
    std::vector<Width> widths;
    double times = 1;  ///< identical subgraphs with identical axes
  };

  /// How many channels each group keeps, with an override for some groups.
  struct Kept {
    const PerGroup<int>& counts;
    std::span<const GroupId> groups = {};
    int count = 0;

    int of(GroupId g) const { return contains(groups, g) ? count : counts[g]; }
  };

  static double width_of(const Width& width, const Kept& kept);
  static double seconds_of(const Term& term, const Kept& kept);

  std::vector<Term> terms_;
  PerGroup<std::vector<size_t>> of_group_;  ///< terms that depend on a group's width
};

/// Of how many indices a kernel computes blocks: the largest power of two, at most 64, of which all
/// widths are multiples behind which the time leaps, and within whose blocks it is even. 0 if the
/// times are too far apart, or too even, to tell.
/// @param widths  ascending
int multiple_of_steps(std::span<const int> widths, std::span<const double> seconds);

/// The same in channels of each group, by the tables of the subgraphs that depend on its width, of
/// which the coarsest counts; halved until the group has two blocks. 0 where no table tells.
PerGroup<int> multiples_of(const Coupling& coupling, std::span<const Subgraph> subgraphs,
                           const LatencyTables& tables);

}  // namespace parsimony
