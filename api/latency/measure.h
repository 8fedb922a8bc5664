// Fills the tables from which a network's latency is predicted.
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "parsimony/api/importance.h"
#include "parsimony/graph/graph.h"
#include "parsimony/graph/operators/factor.h"
#include "parsimony/pruners/latency/model.h"

namespace parsimony {

/// Measures the run time of networks: on an engine, or by a command on another device.
class LatencyMeter {
 public:
  virtual ~LatencyMeter() = default;

  /// Returns the seconds per run of each graph, measured interleaved; empty for a graph that cannot
  /// be run.
  virtual std::vector<std::optional<double>> subgraphs(std::span<const Graph* const> graphs) = 0;

  /// The times of two networks, measured interleaved.
  struct Pair {
    double dense = 0;  ///< seconds of one run
    double share = 1;  ///< the small network's time relative to the dense one's, round by round
    double noise = 0;  ///< relative standard error of `share`, if measuring again reduces it
  };
  /// Measures two networks; returns nothing if only tables are available.
  /// @throws UnsupportedError, saying why, if one of them cannot be run; ModelError if a device
  /// stops responding
  virtual std::optional<Pair> networks(const Graph& dense, const Graph& small) = 0;
};

struct TablesMeasured {
  int count = 0;  ///< subgraphs
  /// Relative errors of new tables, one each, at a width that they were not made from: the middle
  /// of the widest gap.
  std::vector<double> errors;
};

/// Measures the subgraphs that have no entry in `tables`; equal ones once. Along each axis the
/// widths are 1, the quarters, all, and up to five more where the time changes most, so that steps
/// caused by a kernel's block size are found; then all pairs of widths of the two axes are measured
/// interleaved. A subgraph that cannot be run gets a table with the single time 0.
TablesMeasured measure_subgraphs(const Coupled& network, std::span<const Subgraph> subgraphs,
                                 LatencyMeter& meter, LatencyTables& tables);

/// A graph that owns its constants; the weights are views of the network's. Moving it does not
/// invalidate the views.
struct StandaloneSubgraph {
  Graph graph;
  std::deque<std::vector<std::byte>> memory;
};

/// Extracts `nodes` of `network`. Operands from other nodes become inputs, with the shape that
/// `facts` knows; values computed from shapes become constants; values computed from weights alone
/// are computed in the subgraph. The outputs are the results that no node of the subgraph reads,
/// and those that others read.
/// @throws UnsupportedError if the shape of an operand is not known
StandaloneSubgraph standalone_subgraph(const Graph& network, const Facts& facts,
                                       std::span<const NodeId> nodes);

}  // namespace parsimony
