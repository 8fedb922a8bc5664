#include "parsimony/training/statistics/batches.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "parsimony/api/calibration_samples.h"
#include "parsimony/api/errors.h"
#include "parsimony/base/errors.h"
#include "parsimony/data/sample_source.h"
#include "parsimony/speedup/fit_layers.h"
#include "parsimony/torch_io/executor/graph_module.h"
#include "parsimony/torch_io/network.h"
#include "parsimony/training/loop/device.h"

namespace parsimony::training {
namespace {

// Labels are noisy: the standard error of an accuracy of 90 % is one point.
constexpr int64_t kMostTested = 1024;

/// Returns the first samples of a part of the data set.
BatchSource feed_of(const Dataset& data, const Samples& part, int64_t samples, int64_t size) {
  LoaderOptions options = for_evaluation(with_scale_of(data, {.batch = size}));
  options.prefetch = 2;
  const auto loader = std::make_shared<Loader>(part, options);
  loader->start(0);
  return [loader, left = std::min(samples, part.count())]() mutable -> std::optional<SampleBatch> {
    if (left <= 0) return {};
    std::optional<Batch> batch = loader->next();
    if (!batch) return {};
    const int64_t count = std::min(left, batch->labels.size(0));
    left -= count;
    samples_read() += count;
    batch->inputs = batch->inputs.narrow(0, 0, count);
    batch->labels = batch->labels.narrow(0, 0, count);
    return *batch;
  };
}

}  // namespace

Batches batches_of(const Dataset& data, int64_t samples) {
  return [&data, samples](int64_t size) { return feed_of(data, data.train, samples, size); };
}

Batches test_batches_of(const std::shared_ptr<const Dataset>& data) {
  if (data->test.count() == 0) return {};
  return [data](int64_t size) { return feed_of(*data, data->test, kMostTested, size); };
}

Batches batches_of(std::shared_ptr<const SampleSource> data, int64_t samples, int64_t begin) {
  return [data = std::move(data), samples, begin](int64_t size) -> BatchSource {
    const int64_t end = std::min(begin + samples, data->samples() + data->test_samples());
    const int64_t step = data->batch(size);
    const bool whole = data->batch(1) > 1;  // the size is fixed
    return [data, end, step, whole, first = begin]() mutable -> std::optional<SampleBatch> {
      const int64_t count = std::min(step, end - first);
      if (count <= 0 || (whole && count < step)) return {};
      SampleBatch batch;
      batch.count = count;
      batch.inputs = torch_io::to_tensors(data->inputs(first, count));
      if (data->labelled()) {
        Shape dims = data->label_dims();
        dims.insert(dims.begin(), count);
        batch.labels = at::tensor(data->labels(first, count)).reshape(dims);
      }
      for (const TensorBytes& target : data->targets(first, count)) {
        batch.targets.push_back(target.dims.empty() ? at::Tensor()
                                                    : torch_io::to_tensors({target}).front());
      }
      first += count;
      return batch;
    };
  };
}

EngineValues values_of(const std::vector<at::Tensor>& tensors) {
  EngineValues values;
  for (const at::Tensor& tensor : tensors) values.push_back(torch_io::value_of(tensor));
  return values;
}

ValueSource values_of(BatchSource feed) {
  return [feed = std::move(feed)]() -> std::optional<ValueBatch> {
    const std::optional<SampleBatch> batch = feed();
    if (!batch) return {};
    ValueBatch values{values_of(batch->inputs)};
    if (batch->states) {
      for (const FedBack& state : *batch->states) values.fed_back.push_back(state.output);
    }
    return values;
  };
}

Batches share_of(Batches batches, int rank, int ranks) {
  return [batches = std::move(batches), rank, ranks](int64_t size) -> BatchSource {
    return [feed = batches(size * ranks), rank, ranks]() -> std::optional<SampleBatch> {
      std::optional<SampleBatch> batch = feed();
      if (!batch || batch->count < ranks) return {};
      const int64_t all = batch->count;
      batch->count = all / ranks;
      const auto take = [&](at::Tensor& x) {
        if (!x.defined() || x.dim() == 0 || x.size(0) != all) return;
        x = x.narrow(0, batch->count * rank, batch->count);
      };
      for (at::Tensor& input : batch->inputs) take(input);
      for (at::Tensor& target : batch->targets) take(target);
      take(batch->labels);
      return batch;
    };
  };
}

namespace {

/// All batches of a pass, by the number of samples in a batch.
class Uploaded {
 public:
  using List = std::shared_ptr<const std::vector<SampleBatch>>;

  /// Returns null before a pass has ended.
  List of(int64_t size) {
    const std::lock_guard lock(mutex_);
    return lists_[size];
  }
  void keep(int64_t size, std::vector<SampleBatch> batches) {
    const std::lock_guard lock(mutex_);
    lists_[size] = std::make_shared<const std::vector<SampleBatch>>(std::move(batches));
  }

 private:
  std::mutex mutex_;
  std::map<int64_t, List> lists_;
};

/// @returns the number of bytes
int64_t upload(SampleBatch& batch, c10::Device device) {
  int64_t bytes = 0;
  const auto move = [&](at::Tensor& x) {
    if (!x.defined()) return;
    x = x.to(device);
    bytes += static_cast<int64_t>(x.nbytes());
  };
  for (at::Tensor& input : batch.inputs) move(input);
  for (at::Tensor& target : batch.targets) move(target);
  move(batch.labels);
  return bytes;
}

BatchSource feed_of(Uploaded::List list) {
  return [list = std::move(list), next = size_t{0}]() mutable -> std::optional<SampleBatch> {
    if (next == list->size()) return {};
    return (*list)[next++];
  };
}

}  // namespace

Batches on_device(Batches batches, c10::Device device) {
  if (!batches || device.is_cpu()) return batches;
  const auto uploaded = std::make_shared<Uploaded>();
  return [batches = std::move(batches), uploaded, device](int64_t size) -> BatchSource {
    if (Uploaded::List list = uploaded->of(size)) return feed_of(std::move(list));
    return [uploaded, device, size, feed = batches(size), pass = std::vector<SampleBatch>(),
            bytes = int64_t{0}]() mutable {
      std::optional<SampleBatch> batch = feed();
      if (batch) bytes += upload(*batch, device);
      if (!holds(device, bytes)) {
        pass.clear();
      } else if (batch) {
        pass.push_back(*batch);
      } else if (!pass.empty()) {
        uploaded->keep(size, std::exchange(pass, {}));
      }
      return batch;
    };
  };
}

c10::Device device_of(const Batches& batches) {
  const std::optional<SampleBatch> first = batches ? batches(1)() : std::nullopt;
  return first && !first->inputs.empty() ? first->inputs.front().device() : c10::kCPU;
}

Calibration calibration_of(std::shared_ptr<const Dataset> data, int64_t samples) {
  Calibration result;
  result.samples = std::min(samples, data->train.count());
  result.values = element_count(data->train.dims);
  result.batches = [data, samples](int64_t size) { return batches_of(*data, samples)(size); };
  result.labelled = std::move(data);
  return result;
}

namespace {

/// Returns the batches without an incomplete last one.
Batches whole_batches(Batches batches) {
  return [batches = std::move(batches)](int64_t size) -> BatchSource {
    return [feed = batches(size), size]() -> std::optional<SampleBatch> {
      std::optional<SampleBatch> batch = feed();
      if (batch && batch->count < size) return {};
      return batch;
    };
  };
}

}  // namespace

Calibration calibration_of(std::shared_ptr<const SampleSource> data, int64_t samples) {
  // The loader runs ahead.
  if (data->dataset() && data->inputs(0, 1).size() == 1) {
    Calibration result = calibration_of(data->dataset(), samples);
    const bool fixed = data->batch(1) > 1;
    if (fixed) result.batches = whole_batches(std::move(result.batches));
    return result;
  }
  Calibration result;
  result.samples = std::min(samples, data->samples());
  result.values = data->values();
  result.batches = batches_of(data, result.samples);
  const HeldOutSamples held_out(*data, result.samples);
  result.held_out_samples = held_out.count;
  if (held_out.count > 0)
    result.held_out = batches_of(std::move(data), held_out.count, held_out.begin);
  return result;
}

Batches fed_back(const Graph& graph, const std::vector<FedBack>& states, Batches batches) {
  std::vector<ValueId> outputs;
  for (const FedBack& state : states) outputs.push_back(state.output);
  const GraphModule module(part_for(graph, outputs), GraphModuleOptions{.trainable = false});
  const auto shared = std::make_shared<const std::vector<FedBack>>(states);
  return [module, shared, batches = std::move(batches)](int64_t) -> BatchSource {
    return [module = GraphModule(module), shared, feed = batches(1),
            last = std::vector<at::Tensor>()]() mutable -> std::optional<SampleBatch> {
      const at::NoGradGuard no_grad;
      std::optional<SampleBatch> batch = feed();
      if (!batch) return {};
      for (size_t i = 0; i < last.size(); ++i) batch->inputs[(*shared)[i].input] = last[i];
      last = module->forward(batch->inputs);
      batch->states = shared;
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

int64_t batch_that_fits(int64_t values) {
  constexpr int64_t kMost = 256;
  constexpr int64_t kValues = kMost * 3 * 32 * 32;
  return std::clamp<int64_t>(kValues / std::max<int64_t>(1, values), 1, kMost);
}

void for_each_batch(const Graph& graph, const Batches& batches, int64_t size,
                    const std::function<void(const SampleBatch&)>& add) {
  const int64_t fixed = fixed_batch(graph);
  const BatchSource feed = batches(size);
  bool any = false;
  while (const std::optional<SampleBatch> batch = feed()) {
    if (fixed > 0 && batch->count != fixed) continue;
    add(*batch);
    any = true;
  }
  if (!any) throw parsimony::errors::no_calibration_data(size);
}

void check_dims(const Graph& graph, const std::vector<at::Tensor>& inputs) {
  if (inputs.size() != graph.inputs.size()) {
    throw UnsupportedError("calibration: the network has ", graph.inputs.size(),
                           " inputs, but the data has ", inputs.size(),
                           "; npz:FILE has an array for each");
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    const auto& declared = graph.value(graph.inputs[i]).declared;
    if (!declared) continue;
    const Shape found = inputs[i].sizes().vec();
    bool fits = declared->size() == found.size();
    for (size_t d = 1; fits && d < found.size(); ++d) {
      fits = (*declared)[d] <= 0 || (*declared)[d] == found[d];
    }
    if (!fits) {
      throw ModelError("calibration: the samples have shape ", to_string(found),
                       ", the network expects ", to_string(*declared));
    }
  }
}

}  // namespace parsimony::training
