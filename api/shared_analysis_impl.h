// What prunings of one network by different amounts have in common.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "parsimony/api/depth.h"
#include "parsimony/api/prune_model.h"

namespace parsimony {

/// Of one graph, with no node pinned: a part is made when it is first asked for.
struct SharedAnalysis {
  struct Shapes {
    Probed probed;
    std::optional<Probed> other_sizes;
    Facts sample;
  };

  std::optional<bool> weights_are_numbers;
  std::optional<Shapes> shapes;
  std::optional<Coupling> coupling;
  std::optional<Statistics> statistics;
};

/// Of a model that is restored after each pruning.
struct SharedAnalyses {
  SharedAnalysis whole;
  std::map<std::vector<std::string>, SharedAnalysis>
      rest;                                       ///< without the blocks of these additions
  std::optional<std::vector<double>> influences;  ///< of all blocks
};

/// plan_pruning() that takes from `shared` what is there and leaves there what it finds; null:
/// alone.
/// @param settings  of the graph's layers, in place of the configuration; null: those that it says
Pruning plan_pruning(Graph& graph, const PruneRequest& request, const PruneServices& services,
                     SharedAnalysis* shared, const Settings* settings = nullptr);

/// plan_depth() and prune_model() alike.
DepthPruning plan_depth(const Graph& graph, const PruneRequest& request,
                        const PruneServices& services, SharedAnalyses* shared);
PruneResult prune_model(EditableModel& model, const PruneRequest& request,
                        const PruneServices& services, SharedAnalyses* shared);

}  // namespace parsimony
