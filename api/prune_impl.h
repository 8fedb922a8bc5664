// Parts of plan_pruning() and prune_model(): the times of their stages, analyses shared by prunings
// of one network, zeroed elements.
#pragma once

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "parsimony/api/depth.h"
#include "parsimony/api/prune.h"
#include "parsimony/api/prune_model.h"
#include "parsimony/data/sample_source.h"
#include "parsimony/masks/mask.h"
#include "parsimony/pruners/elements/elements.h"
#include "parsimony/speedup/plan.h"

namespace parsimony {

/// Times consecutive stages and reports their start.
class Stopwatch {
 public:
  Stopwatch(std::vector<StageTime>& times, const PruneServices& services)
      : times_(times), services_(services) {}

  /// Runs `work` and adds its time to the stage.
  template <typename Work>
  auto operator()(std::string_view stage, Work&& work) {
    if (services_.progress) services_.progress(stage);
    const Begin begin;
    if constexpr (std::is_void_v<decltype(work())>) {
      work();
      add(stage, begin);
    } else {
      auto result = work();
      add(stage, begin);
      return result;
    }
  }

 private:
  struct Begin {
    std::chrono::steady_clock::time_point time = std::chrono::steady_clock::now();
    int64_t samples = samples_read();
  };

  void add(std::string_view stage, const Begin& begin) {
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin.time;
    auto it = std::ranges::find_if(times_, [&](const StageTime& t) { return t.stage == stage; });
    if (it == times_.end()) it = times_.insert(it, {std::string(stage)});
    it->seconds += passed.count();
    it->samples += samples_read() - begin.samples;
  }

  std::vector<StageTime>& times_;
  const PruneServices& services_;
};

/// Analyses of one graph, with no node pinned; each is made when it is first asked for.
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

/// Analyses of a model that is restored after each pruning.
struct SharedAnalyses {
  SharedAnalysis whole;
  std::map<std::vector<std::string>, SharedAnalysis>
      rest;                                       ///< without the blocks of these additions
  std::optional<std::vector<double>> influences;  ///< of all blocks
};

/// plan_pruning() that reads and extends `shared`; null: no sharing. @param settings  of the
/// graph's layers, in place of the configuration; null: those of the configuration
Pruning plan_pruning(Graph& graph, const PruneRequest& request, const PruneServices& services,
                     SharedAnalysis* shared, const Settings* settings = nullptr);

/// Adds what users should know of the pruning: what stays that was asked for, and what callers see.
void add_notes(const Graph& graph, const PruneRequest& request, const Settings& settings,
               Pruning& pruning);

/// plan_depth() and prune_model() with shared analyses.
DepthPruning plan_depth(const Graph& graph, const PruneRequest& request,
                        const PruneServices& services, SharedAnalyses* shared);
PruneResult prune_model(EditableModel& model, const PruneRequest& request,
                        const PruneServices& services, SharedAnalyses* shared);

/// Adds zeros and new values to a plan that has its slices already; new values are sliced like
/// their tensors. Returns the outcome of each tensor.
std::vector<ElementOutcome> add_elements(const ElementPruning& pruning, Plan& plan);

}  // namespace parsimony
