// The predicted latency of a network as a function of how many channels each group keeps.
#pragma once

#include <algorithm>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "parsimony/base/ranges.h"
#include "parsimony/masks/coupling.h"
#include "parsimony/pruners/latency/subgraphs.h"
#include "parsimony/pruners/latency/table.h"

namespace parsimony {

/// By Subgraph::key.
using LatencyTables = std::map<std::string, LatencyTable>;

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

}  // namespace parsimony
