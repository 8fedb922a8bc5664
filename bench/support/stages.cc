#include "bench/support/stages.h"

#include <optional>

#include "bench/support/pipeline.h"
#include "parsimony/api/prune.h"
#include "parsimony/graph/elements.h"
#include "parsimony/onnx_io/editor.h"
#include "parsimony/onnx_io/reader.h"
#include "parsimony/pruners/allocate.h"
#include "parsimony/speedup/make_plan.h"

namespace parsimony::bench {
namespace {

struct Inferred {
  Probed probed;
  Facts sample;
  std::optional<Probed> second;
};

Inferred infer_all(Graph& graph) {
  Inferred result;
  separate_shared_vectors(graph);
  result.probed = infer_with_choice(graph);
  result.second = second_probe(graph, result.probed);
  result.sample = infer_sample(graph, result.probed);
  return result;
}

Allocation score_and_allocate(const Graph& graph, const Inferred& known, const Coupling& coupling) {
  const Settings settings = resolve(from_shorthand({.ratio = 0.5}), graph);
  return allocate(graph, known.sample, coupling, settings, {});
}

}  // namespace

std::vector<StageCost> run_stages(const std::string& in, const std::string& out) {
  std::vector<StageCost> costs;
  const auto timed = [&](std::string_view stage, const auto& work) {
    const Clock clock;
    auto result = work();
    costs.push_back({stage, clock.cpu()});
    return result;
  };
  onnx_io::ModelFile file = timed("read", [&] { return onnx_io::ModelFile(in); });
  Graph graph = timed("graph", [&] { return onnx_io::to_graph(file); });
  timed("weights", [&] {
    check_weights(graph);
    return 0;
  });
  const Inferred known = timed("infer", [&] { return infer_all(graph); });
  const Facts& facts = known.probed.facts;
  const Coupling coupling = timed("couple", [&] { return couple(graph, facts); });
  const Allocation allocation =
      timed("score", [&] { return score_and_allocate(graph, known, coupling); });
  const PlanAttempt made =
      timed("plan", [&] { return make_plan(graph, facts, coupling, allocation.masks); });
  onnx_io::OnnxEditor editor(file);
  timed("edit", [&] {
    apply_plan(made.plan, graph, known.probed.probe, editor);
    return 0;
  });
  timed("write", [&] {
    file.write(out);
    return 0;
  });
  return costs;
}

}  // namespace parsimony::bench
