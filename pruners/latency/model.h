// The predicted latency of a network as a function of how many channels each group keeps: the
// subgraphs of a network, whose times add up, a layer with what follows it; their times, measured
// at some widths; and the widths that a device computes well.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "parsimony/base/ranges.h"
#include "parsimony/graph/operators/factor.h"
#include "parsimony/masks/coupling.h"

namespace parsimony {

/// Nodes that are measured together, and what their time depends on.
struct Subgraph {
  std::vector<NodeId> nodes;  ///< in graph order
  /// The dim classes (see Coupling) that can shrink, at most two; of a subgraph of one node with
  /// more of them only the two longest, of two that share a group only the longer one.
  std::vector<DimClassId> dim_classes;
  /// Equal for subgraphs that take the same time at the same widths: operators, attributes, shapes.
  std::string key;
  std::string what;  ///< for display: "Conv 16x16x3x3, Add, Relu"
};

/// Every node that computes on data belongs to one subgraph. A subgraph begins with a layer, or
/// where a third axis would be added; normalisation, activation, addition and pooling belong to the
/// subgraph of the operand that is computed last. Shape arithmetic and computation on weights alone
/// cost nothing; operators with bodies are skipped.
std::vector<Subgraph> subgraphs_of(const Graph& graph, const Facts& facts,
                                   const Coupling& coupling);

/// Times over a grid: `seconds[i · y.size() + j]` for widths x[i] and y[j], both ascending. A
/// subgraph with one axis has y = {1}, one without has x = {1} too.
struct LatencyTable {
  std::string what;  ///< for display: "Conv 16x16x3x3, Add, Relu"
  std::vector<int> x = {1};
  std::vector<int> y = {1};
  std::vector<double> seconds = {0};
  int64_t measured = 0;  ///< when: seconds since 1970; 0 if unknown

  /// Bilinear interpolation between the four surrounding points; clamped at the edges.
  double at(double width_x, double width_y) const;

  /// Ascending widths and one finite time of at least 0 for each pair of them?
  bool is_sound() const;

  bool operator==(const LatencyTable&) const = default;
};

/// By Subgraph::key.
using LatencyTables = std::map<std::string, LatencyTable>;

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

  /// The number of channels that each group keeps, with an override for some groups.
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

/// Returns the number of indices in a kernel's block: the largest power of two, at most 64, that
/// divides every width behind which the time leaps, and within whose blocks the time is even. 0 if
/// the times are too far apart, or too even, to tell.
/// @param widths  ascending
int multiple_of_steps(std::span<const int> widths, std::span<const double> seconds);

/// Returns the block size in channels of each group, by the tables of the subgraphs that depend on
/// its width; the coarsest counts. Halved until the group has two blocks. 0 where no table tells.
PerGroup<int> multiples_of(const Coupling& coupling, std::span<const Subgraph> subgraphs,
                           const LatencyTables& tables);

}  // namespace parsimony
