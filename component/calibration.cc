#include "parsimony/component/calibration.h"

#include "parsimony/component/errors.h"

namespace parsimony::component {
namespace {

/// Side of the square images that the network's first input takes; nothing where it is open.
std::optional<int64_t> image_size(const Graph& graph) {
  if (graph.inputs.empty()) return {};
  const auto& dims = graph.value(graph.inputs.front()).declared;
  if (!dims || dims->size() != 4 || (*dims)[2] <= 0 || (*dims)[2] != (*dims)[3]) return {};
  return (*dims)[2];
}

}  // namespace

training::Dataset calibration_data(const cli::CalibrationOrder& order, const Graph& graph) {
  training::DatasetOptions options;
  options.train_samples = order.samples;
  if (order.data.starts_with("folder:")) options.size = image_size(graph);
  training::Dataset data = training::read_dataset(order.data, options);
  if (order.mean.empty()) return data;
  const int64_t channels = data.train.dims.empty() ? 1 : data.train.dims.front();
  if (static_cast<int64_t>(order.mean.size()) != channels) {
    throw errors::wrong_means(order.mean.size(), channels);
  }
  data.mean = order.mean;
  data.deviation = order.deviation;
  return data;
}

}  // namespace parsimony::component
