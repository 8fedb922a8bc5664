// Trial pruning on the graph alone, and how important a group's channels then are to the outputs.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "parsimony/api/prune_services.h"
#include "parsimony/graph/infer.h"
#include "parsimony/graph/model_editor.h"
#include "parsimony/masks/mask.h"
#include "parsimony/pruners/budget.h"
#include "parsimony/speedup/plan.h"

namespace parsimony {

/// A network with the shapes inferred with `probe`, and its groups.
struct Coupled {
  const Graph& graph;
  const Probe& probe;
  const Facts& facts;
  const Coupling& coupling;
};

/// A network that was pruned by masks, and how.
struct Trial {
  Plan plan;
  GraphEditor editor;

  const Graph& graph() const { return editor.graph(); }
};

/// Empty if the network cannot be pruned by these masks.
std::optional<Trial> cut(const Coupled& network, const AxisMasks& masks);

/// Runs the network with one group alone narrowed, at each tenth of its channels.
class ImportanceMeter {
 public:
  /// Measures the R² of the dense network. The arguments must outlive the meter.
  ImportanceMeter(const Coupled& network, const RSquared& r_squared);

  /// The share of the dense network's R² that remains when `groups`, which lose the same channels,
  /// keep only the candidate's best 0, 1, … channels: 0..1, ascending, linear between the measured
  /// widths. Empty if nothing remains at any of them, or if the groups cannot be pruned.
  std::vector<double> curve(std::span<const GroupId> groups, const Candidate& candidate) const;

 private:
  Coupled network_;
  const RSquared& r_squared_;
  double whole_ = 1;
};

}  // namespace parsimony
