// Services for a pruning: they run data and networks, and let a program make its own decisions.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "parsimony/graph/graph.h"
#include "parsimony/pruners/allocate.h"
#include "parsimony/pruners/criterion.h"
#include "parsimony/pruners/statistics.h"
#include "parsimony/speedup/observation.h"
#include "parsimony/speedup/plan.h"
#include "parsimony/speedup/recovery.h"

namespace parsimony {

class Engine;
class LatencyMeter;
struct ResidualBlock;
struct LatencyTable;
using LatencyTables = std::map<std::string, LatencyTable>;

/// R² of a smaller network's outputs relative to the original's, 0..1, for instance
/// NetworkComparison::r_squared().
using RSquared = std::function<double(const Graph& small)>;

/// Runs data through a network and returns, for each block, how much it changes its input.
using BlockInfluence =
    std::function<std::vector<double>(const Graph&, const std::vector<ResidualBlock>&)>;

/// The error of the small network of a plan relative to the original; 0: none.
using PlanError = std::function<double(const Plan&)>;

/// Changes values of the small network of a plan: see training/recovery.
using Recovery = std::function<Recovered(const Graph& original, const Plan&)>;

/// Receives lines of progress text.
using Say = std::function<void(const std::string& line)>;

/// Services that a pruning calls. Each may be missing, and they may come from several providers:
/// EngineServices has those that a request names, on engines; training/ has measurement() and
/// recovery() on a module's own data; a program adds its own. Objects that a service refers to
/// must outlive the pruning.
///
///     PruneServices services;
///     services.measure = training::measurement(batches);
///     auto pruned = prune(model, example, read_config("taylor.json"), services);
struct PruneServices {
  Engine* engine = nullptr;  ///< runs the proof; null: there is none
  Measurement measure = {};  ///< runs data through the network, for criteria that need it
  Observe observe = {};      ///< with exact constants; without it only zero channels are removed
  RSquared r_squared = {};   ///< runs networks, for scope "outputs" and budgets of milliseconds
  Recovery recover = {};     ///< after the cut; without it values are not changed
  /// With several criteria or scopes: a recovery, after which they are compared; missing:
  /// `recover`, whose result is then that of the best.
  Recovery repair = {};
  ScoreFunction score = {};         ///< a custom criterion, overriding the configured one
  ChooseFunction choose = {};       ///< a custom allocator
  BlockInfluence influence = {};    ///< with `depth`: blocks of least influence are removed first
  PlanError error = {};             ///< with `depth`, for kAuto
  LatencyMeter* meter = nullptr;    ///< required for budgets of milliseconds
  LatencyTables* tables = nullptr;  ///< from earlier runs, receives new ones; may be null
  std::function<void(std::string_view stage)> progress = {};  ///< called when a stage begins
  Say say = {};                                               ///< called at every step of recovery
};

}  // namespace parsimony
