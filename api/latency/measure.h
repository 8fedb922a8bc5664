// Fills the tables that a network's latency is predicted from.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "parsimony/api/trial.h"
#include "parsimony/pruners/latency/model.h"

namespace parsimony {

/// Runs networks and says how long they take. The command's runs them on an engine.
class LatencyMeter {
 public:
  virtual ~LatencyMeter() = default;

  /// Seconds of one run of each graph, all measured in turn; nothing for one that does not run.
  virtual std::vector<std::optional<double>> pieces(std::span<const Graph* const> graphs) = 0;

  /// Two networks in turn.
  struct Pair {
    double dense = 0;  ///< seconds of one run
    double share = 1;  ///< how many times as long the small one takes, turn by turn
  };
  /// @throws UnsupportedError, saying why, if one of them cannot be run
  virtual Pair networks(const Graph& dense, const Graph& small) = 0;
};

/// Measures the pieces that `tables` has no entry for; equal ones once. Along each axis the widths
/// are 1, quarters and whole, and up to five more where the time changes most, so that steps of a
/// kernel's blocks are found; then all pairs of widths of the two axes are measured in turn. A
/// piece that cannot be run gets a table of one time, 0.
/// @param progress told of each piece before it is measured; may be empty
/// @returns how many pieces were measured
int measure_pieces(const Coupled& network, std::span<const Piece> pieces, LatencyMeter& meter,
                   LatencyTables& tables,
                   const std::function<void(std::string_view what)>& progress = {});

}  // namespace parsimony
