#include "parsimony/api/comparison.h"

#include "parsimony/engines/random_inputs.h"

namespace parsimony {
namespace {

ErrorData random_data(const Graph& graph, const RandomInputSpec& order) {
  ErrorData data;
  for (int64_t i = 0; i < order.samples; ++i) {
    runtime::FeedOptions feed;
    feed.specs = order.specs;
    feed.seed = order.seed + static_cast<uint64_t>(i) * graph.inputs.size();
    data.batches.push_back(runtime::random_inputs(graph, feed));
  }
  return data;
}

}  // namespace

NetworkComparison compare_with(const Graph& original, const CalibrationData& data,
                               const RandomInputSpec& random, DataEngine& engine, bool unseen) {
  return {
      original, engine.engine(),
      data.data.empty() ? random_data(original, random) : engine.samples(original, data, unseen)};
}

}  // namespace parsimony
