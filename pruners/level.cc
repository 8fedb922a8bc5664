#include "parsimony/pruners/level.h"

#include "parsimony/pruners/elements/element_tasks.h"
#include "parsimony/pruners/level_counts.h"

namespace parsimony {
namespace {

/// Zero lies somewhere in the middle of the numbers, not at 0.
bool is_unsigned(DType type) {
  return type == DType::kUInt8 || type == DType::kUInt16 || type == DType::kUInt4 ||
         type == DType::kUInt2;
}

}  // namespace

std::vector<TensorZeros> prune_elements(const Graph& graph, const Settings& settings) {
  const std::vector<elements::ElementTask> tasks = elements::element_tasks(graph, settings);
  std::vector<LeveledMatrix> matrices;
  for (size_t r = 0; r < settings.requests.size(); ++r) {
    if (settings.requests[r].criterion != "level") continue;
    for (const elements::ElementTask& task : tasks) {
      const Weight& weight = graph.weight(task.weight);
      if (task.request != static_cast<int>(r) || is_unsigned(weight.dtype)) continue;
      matrices.push_back({&weight, static_cast<int>(r)});
    }
  }
  const std::vector<int64_t> counts = level_counts(settings, matrices);
  std::vector<TensorZeros> result;
  for (size_t i = 0; i < matrices.size(); ++i) {
    if (counts[i] > 0) result.push_back({matrices[i].weight->name, counts[i]});
    graph.source->release(*matrices[i].weight);
  }
  return result;
}

}  // namespace parsimony
