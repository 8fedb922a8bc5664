#include "parsimony/cli/torch/calibration.h"

#include <ATen/core/Tensor.h>

#include <optional>
#include <vector>

#include "parsimony/cli/torch/errors.h"
#include "parsimony/training/statistics/batches.h"

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

training::Dataset calibration_data(const CalibrationData& job, const Graph& graph) {
  training::DatasetOptions options;
  options.train_samples = job.samples;
  if (job.data.starts_with("folder:")) options.size = image_size(graph);
  training::Dataset data = training::read_dataset(job.data, options);
  if (job.mean.empty()) return data;
  const int64_t channels = data.train.dims.empty() ? 1 : data.train.dims.front();
  if (static_cast<int64_t>(job.mean.size()) != channels) {
    throw errors::wrong_means(job.mean.size(), channels);
  }
  data.mean = job.mean;
  data.deviation = job.deviation;
  return data;
}

ErrorData calibration_samples(const CalibrationData& job, const Graph& graph) {
  constexpr int64_t kBatch = 64;
  const int64_t fixed = training::fixed_batch(graph);
  const training::Dataset data = calibration_data(job, graph);
  const training::Feed feed = training::batches_of(data, job.samples)(fixed > 0 ? fixed : kBatch);
  ErrorData result;
  while (const std::optional<training::Batch> batch = feed()) {
    if (fixed > 0 && batch->labels.size(0) != fixed) break;
    const at::Tensor x = batch->inputs.contiguous();
    const auto* bytes = static_cast<const std::byte*>(x.data_ptr());
    result.batches.push_back({{graph.value(graph.inputs.front()).name, DType::kFloat32,
                               x.sizes().vec(), std::vector(bytes, bytes + x.nbytes())}});
    const at::Tensor labels = batch->labels.contiguous();
    const auto* values = labels.data_ptr<int64_t>();
    result.labels.insert(result.labels.end(), values, values + labels.numel());
  }
  return result;
}

}  // namespace parsimony::component
