#include "parsimony/pruners/elements/element_tasks.h"

#include <map>

#include "parsimony/pruners/criterion.h"
#include "parsimony/pruners/layers.h"

namespace parsimony::elements {

namespace {

/// kNone where the layer is not pruned by elements.
int request_of(const LayerSetting& setting, const Settings& settings) {
  if (setting.state != LayerSetting::State::kPruned) return kNone;
  const Request& request = settings.requests[setting.request];
  return find_criterion(request.criterion).score == nullptr ? setting.request : kNone;
}

/// The more conservative of two requests for one matrix.
int more_careful(int a, int b, const Settings& settings) {
  if (a == kNone || b == kNone) return kNone;
  const auto ratio = [&](int r) { return settings.requests[r].ratio; };
  return ratio(b) < ratio(a) ? b : a;
}

}  // namespace

std::vector<ElementTask> element_tasks(const Graph& graph, const Settings& settings) {
  const Layers layers(graph);
  std::vector<ElementTask> tasks;
  std::map<WeightId, size_t> place;
  for (const NodeId n : graph.nodes.ids()) {
    const auto layer = n;
    if (!layers.contains(layer)) continue;
    const int request = request_of(settings.layers[n], settings);
    for (ValueId value : layers.weights(layer)) {
      const WeightId weight = graph.value(value).weight;
      const auto [found, is_new] = place.try_emplace(weight, tasks.size());
      if (is_new) tasks.push_back({weight, request, {}});
      ElementTask& task = tasks[found->second];
      task.request = more_careful(task.request, request, settings);
      task.readers.push_back({layer, value});
    }
  }
  std::erase_if(tasks, [](const ElementTask& task) { return task.request == kNone; });
  return tasks;
}

}  // namespace parsimony::elements
