#include "parsimony/api/prune.h"

#include <algorithm>
#include <chrono>

#include "parsimony/graph/errors.h"
#include "parsimony/pruners/level.h"
#include "parsimony/speedup/make_plan.h"

namespace parsimony {
namespace {

// A network where so many nodes do not fit is not one that the rules describe.
constexpr size_t kMostRefusals = 64;

/// Times stages, one after the other.
class Stopwatch {
 public:
  Stopwatch(std::vector<StageTime>& times, const PruneOptions& options)
      : times_(times), options_(options) {}

  template <typename Work>
  auto operator()(std::string_view stage, Work&& work) {
    if (options_.progress) options_.progress(stage);
    const auto begin = std::chrono::steady_clock::now();
    auto result = work();
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin;
    const auto it = std::find_if(times_.begin(), times_.end(),
                                 [&](const StageTime& t) { return t.stage == stage; });
    if (it == times_.end()) {
      times_.push_back({std::string(stage), passed.count()});
    } else {
      it->seconds += passed.count();
    }
    return result;
  }

 private:
  std::vector<StageTime>& times_;
  const PruneOptions& options_;
};

Granularity granularity_of(const ConfigList& config, const PruneOptions& options) {
  return config.granularity.value_or(options.granularity);
}

void note_compromises(const Coupling& coupling, Pruning& pruning) {
  for (const Compromise& compromise : pruning.allocation.compromises) {
    const std::string who = compromise.group == kNone
                                ? std::string()
                                : "group " + coupling.groups[static_cast<size_t>(compromise.group)].id + ": ";
    pruning.notes.push_back(who + compromise.reason);
  }
  if (pruning.allocation.given_back > 0) {
    pruning.notes.push_back(std::to_string(pruning.allocation.given_back) +
                            " channels came back, because a dimension would have been empty");
  }
}

/// Groups that mix have no exact reference; the user may not want them.
void leave_mixing_whole(const Coupling& coupling, AxisMasks& masks) {
  for (size_t g = 0; g < coupling.groups.size(); ++g) {
    if (coupling.groups[g].mixes) std::fill(masks.keep[g].begin(), masks.keep[g].end(), uint8_t{1});
  }
}

}  // namespace

Analysis analyse(Graph& graph, const PruneOptions& options) {
  separate_shared_vectors(graph);
  Analysis analysis;
  analysis.probe = choose_probe(graph, options.inputs);
  analysis.facts = infer(graph, analysis.probe);
  CouplingOptions coupling;
  coupling.granularity = options.granularity;
  analysis.coupling = couple(graph, analysis.facts, coupling);
  return analysis;
}

Pruning plan_pruning(Graph& graph, const ConfigList& config, const PruneOptions& options) {
  Pruning pruning;
  Stopwatch timed(pruning.times, options);
  const Settings settings = timed("config", [&] { return resolve(config, graph); });
  CouplingOptions coupling_options;
  coupling_options.granularity = granularity_of(config, options);
  pruning.analysis.facts = timed("infer", [&] {
    separate_shared_vectors(graph);
    pruning.analysis.probe = choose_probe(graph, options.inputs);
    return infer(graph, pruning.analysis.probe);
  });
  const Facts& facts = pruning.analysis.facts;
  for (;;) {
    pruning.analysis.coupling = timed("couple", [&] { return couple(graph, facts, coupling_options); });
    const Coupling& coupling = pruning.analysis.coupling;
    pruning.allocation = timed("score", [&] {
      return allocate(graph, facts, coupling, settings, {options.seed});
    });
    AxisMasks& masks = pruning.allocation.masks;
    if (options.exact_only) leave_mixing_whole(coupling, masks);
    pruning.plan = timed("plan", [&] { return make_plan(graph, facts, coupling, masks); });
    const std::vector<NodeId> refused = timed("check", [&] {
      return disagreements(graph, facts, pruning.analysis.probe, coupling, masks, pruning.plan);
    });
    if (refused.empty()) break;
    if (coupling_options.keep_whole.size() >= kMostRefusals) {
      throw UnsupportedError("the smaller shapes do not fit together at node \"" +
                             label_of(graph, graph.node(refused[0])) + "\"");
    }
    for (const NodeId node : refused) {
      coupling_options.keep_whole.push_back(node);
      pruning.notes.push_back("node \"" + label_of(graph, graph.node(node)) +
                              "\" stays whole: the smaller shapes did not fit there");
    }
  }
  const Coupling& coupling = pruning.analysis.coupling;
  for (const TensorZeros& zeros : prune_elements(graph, settings)) {
    pruning.plan.zeros.push_back({zeros.tensor, zeros.smallest});
  }
  pruning.plan.kept_whole = kept_whole(graph, coupling);
  const CostModel cost(graph, facts, coupling);
  pruning.dense = cost.dense();
  pruning.small = cost.under(pruning.allocation.masks);
  note_compromises(coupling, pruning);
  return pruning;
}

}  // namespace parsimony
