// Trial pruning on the graph alone: measures the importance of a group's channels to the outputs,
// and the network's error as each group alone loses channels.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "parsimony/api/prune.h"
#include "parsimony/api/prune_services.h"
#include "parsimony/graph/infer.h"
#include "parsimony/graph/model_editor.h"
#include "parsimony/masks/mask.h"
#include "parsimony/pruners/budget.h"
#include "parsimony/pruners/importance.h"
#include "parsimony/speedup/plan.h"

namespace parsimony {

/// A network with the shapes inferred with `probe`, and its groups.
struct Coupled {
  const Graph& graph;
  const Probe& probe;
  const Facts& facts;
  const Coupling& coupling;
};

/// A network pruned by masks, and its plan.
struct Trial {
  Plan plan;
  GraphEditor editor;

  const Graph& graph() const { return editor.graph(); }
};

/// Prunes the network by masks; returns nothing if that is not possible.
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

/// The error of a smaller network relative to the original; 0: none. The caller decides what to
/// compare: outputs, or accuracy.
using NetworkError = std::function<double(const Trial& small)>;

struct SensitivityOptions {
  std::string criterion = "l1";  ///< ranks the channels
  std::vector<double> ratios = {0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9};
  CriterionOptions scoring = {};
  std::function<void(std::string_view group)> progress = {};  ///< called when a stage begins
};

struct GroupSensitivity {
  GroupId group = kNone;  ///< of the coupling
  SensitivityCurve curve;
};

/// For one group at a time, with all others dense, removes floor(ratio · size) channels and
/// measures the error. Ratios that remove the same channels as a smaller one are not measured
/// again. Groups that cannot be pruned alone, and those of one channel, are skipped.
/// @throws ConfigError for an unknown criterion or one over elements; whatever `error_of` throws
std::vector<GroupSensitivity> sensitivity(const Graph& graph, const Analysis& analysis,
                                          const SensitivityOptions& options,
                                          const NetworkError& error_of);

}  // namespace parsimony
