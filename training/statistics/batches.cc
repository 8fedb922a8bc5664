#include "parsimony/training/statistics/batches.h"

#include <algorithm>
#include <memory>

#include "parsimony/training/errors.h"

namespace parsimony::training {

Batches batches_of(const Dataset& data, int64_t samples) {
  return [&data, samples](int64_t size) -> Feed {
    LoaderOptions options = for_evaluation(with_scale_of(data, {.batch = size}));
    options.prefetch = 2;
    const auto loader = std::make_shared<Loader>(data.train, options);
    loader->start(0);
    return
        [loader, left = std::min(samples, data.train.count())]() mutable -> std::optional<Batch> {
          if (left <= 0) return {};
          std::optional<Batch> batch = loader->next();
          if (!batch) return {};
          const int64_t count = std::min(left, batch->labels.size(0));
          left -= count;
          batch->inputs = batch->inputs.narrow(0, 0, count);
          batch->labels = batch->labels.narrow(0, 0, count);
          return batch;
        };
  };
}

int64_t fixed_batch(const Graph& graph) {
  if (graph.inputs.empty()) return 0;
  const auto& declared = graph.value(graph.inputs.front()).declared;
  return declared && !declared->empty() && declared->front() > 0 ? declared->front() : 0;
}

int64_t calibration_batch(const Graph& graph) {
  constexpr int64_t kOpenBatch = 32;
  const int64_t fixed = fixed_batch(graph);
  return fixed > 0 ? fixed : kOpenBatch;
}

void for_each_batch(const Graph& graph, const Batches& batches,
                    const std::function<void(const Batch&)>& add) {
  const int64_t fixed = fixed_batch(graph);
  const int64_t size = calibration_batch(graph);
  const Feed feed = batches(size);
  bool any = false;
  while (const std::optional<Batch> batch = feed()) {
    if (fixed > 0 && batch->labels.size(0) != fixed) continue;
    add(*batch);
    any = true;
  }
  if (!any) throw errors::no_calibration_data(size);
}

void check_dims(const Graph& graph, const at::Tensor& x) {
  const auto& declared = graph.value(graph.inputs.front()).declared;
  if (!declared) return;
  const Shape found = x.sizes().vec();
  bool fits = declared->size() == found.size();
  for (size_t d = 1; fits && d < found.size(); ++d) {
    fits = (*declared)[d] <= 0 || (*declared)[d] == found[d];
  }
  if (!fits) throw errors::calibration_dims(found, *declared);
}

}  // namespace parsimony::training
