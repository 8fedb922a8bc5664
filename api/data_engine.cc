#include "parsimony/api/data_engine.h"

#include <algorithm>
#include <string>
#include <utility>

#include "parsimony/api/calibration_samples.h"
#include "parsimony/api/errors.h"
#include "parsimony/api/gradient_statistics.h"
#include "parsimony/api/measure.h"
#include "parsimony/api/recovery/recover.h"
#include "parsimony/base/errors.h"
#include "parsimony/engines/random_inputs.h"

namespace parsimony {
namespace {

/// Returns the feature of the data or the network that only libtorch supports; empty if none.
std::string only_libtorch(const Graph& graph, const CalibrationData& data) {
  if (graph.format != "onnx" && graph.format != "torch.export") {
    return "running data through TorchScript or a live module";
  }
  if (!data.states.empty()) return "--states with calibration data";
  if (data.ranks) return "--processes";
  const bool elsewhere = data.uses_device() && (data.device != "auto" || has_torch_component());
  if (elsewhere) return "--device " + data.device;
  return {};
}

ErrorData array_samples(const Graph& graph, const CalibrationData& data, bool unseen) {
  const CalibrationSamples samples(data, graph);
  const bool held_out = unseen && samples.held_out() > 0;
  constexpr int64_t kBatch = 64;
  constexpr size_t kMostUnseen = 128 << 20;  // all stay in memory, with their outputs
  size_t bytes = 0;
  ErrorData result;
  samples.for_each(held_out, kBatch, [&](int64_t first, int64_t count) {
    if (unseen && bytes > kMostUnseen) return;
    TensorList inputs = samples.data().inputs(first, count);
    for (const TensorBytes& input : inputs) bytes += input.bytes.size();
    result.batches.push_back(std::move(inputs));
    if (!samples.data().labelled()) return;
    const std::vector<int64_t> labels = samples.data().labels(first, count);
    result.labels.insert(result.labels.end(), labels.begin(), labels.end());
  });
  return result;
}

/// Returns the runs over the samples of a process.
Runs runs_of(ProcessEngine& process) {
  return [&process](int64_t requested, const SeeRun& see) {
    const std::vector<int64_t> runs = process.runs(requested);
    if (runs.empty()) throw errors::no_calibration_data(process.batch(1));
    int64_t first = 0;
    for (const int64_t count : runs) {
      see(process.inputs(first, count), count);
      first += count;
    }
  };
}

}  // namespace

DataEngine::DataEngine(const EngineChoice& choice, std::optional<int> threads) : torch_(threads) {
  const std::string name = name_of(choice);
  if (name == torch_.name()) return;
  other_ = engine_of({name, choice.onnxruntime}, threads);
}

DataEngine::DataEngine(const EngineChoice& choice, std::optional<int> threads,
                       const CalibrationData& data)
    : DataEngine(choice, threads) {
  if (auto process = ProcessEngine::of(data.data)) other_ = std::move(process);
}

/// Runs on ONNX Runtime, or on libtorch if `why` is not empty or only libtorch can run the network.
template <typename OnOnnxRuntime, typename OnTorch>
auto DataEngine::either(const std::string& why, const OnOnnxRuntime& on_onnx_runtime,
                        const OnTorch& on_torch) const {
  if (!other_) return on_torch(torch_.loaded());
  if (!why.empty() && !has_torch_component()) {
    throw UnsupportedError(
        why,
        " requires libtorch and is not supported on ONNX Runtime; install parsimony-torch, or "
        "build with -DPARSIMONY_TORCH=ON where libtorch-dev is installed");
  }
  if (!why.empty()) return on_torch(torch_.loaded());
  try {
    return on_onnx_runtime(*other_);
  } catch (const UnsupportedError&) {
    if (!has_torch_component()) throw;
    return on_torch(torch_.loaded());
  }
}

Statistics DataEngine::measure(const Graph& graph, const Facts& facts, const Coupling& coupling,
                               const Needs& needs, const CalibrationData& data) const {
  if (ProcessEngine* process = this->process()) {
    process->share(graph);
    const bool runs = !needs.inputs.empty() || std::ranges::any_of(needs.channels, is_forward);
    const Runs none = [](int64_t, const SeeRun&) {};
    Statistics statistics =
        measure_on(*process, graph, facts, coupling, needs, runs ? runs_of(*process) : none);
    if (!runs) statistics.samples = process->samples();
    if (!std::ranges::all_of(needs.channels, is_forward)) {
      add_gradients(*process, graph, coupling, needs, statistics);
    }
    return statistics;
  }
  std::string why = only_libtorch(graph, data);
  if (!std::ranges::all_of(needs.channels, is_forward)) why = "a gradient-based criterion";
  return either(
      why,
      [&](Engine& engine) {
        return measure_on(engine, graph, facts, coupling, needs, runs_of(data, graph));
      },
      [&](TorchComponent& libtorch) {
        return libtorch.measure(graph, facts, coupling, needs, data);
      });
}

std::vector<double> DataEngine::block_influences(const Graph& graph,
                                                 const std::vector<ResidualBlock>& blocks,
                                                 const CalibrationData& data) const {
  if (ProcessEngine* process = this->process()) {
    process->share(graph);
    return block_influences_on(*process, graph, blocks, runs_of(*process));
  }
  return either(
      only_libtorch(graph, data),
      [&](Engine& engine) {
        return block_influences_on(engine, graph, blocks, runs_of(data, graph));
      },
      [&](TorchComponent& libtorch) { return libtorch.block_influences(graph, blocks, data); });
}

ErrorData DataEngine::samples(const Graph& graph, const CalibrationData& data, bool unseen) const {
  if (ProcessEngine* process = this->process()) {
    process->share(graph);
    ErrorData result;
    constexpr int64_t kBatch = 64;
    int64_t count = 0;
    runs_of (*process)(kBatch, [&](const EngineValues& inputs, int64_t samples) {
      result.batches.push_back(on_host(inputs));
      count += samples;
    });
    result.labels = process->classes(count);
    return result;
  }
  return either(
      only_libtorch(graph, data), [&](Engine&) { return array_samples(graph, data, unseen); },
      [&](TorchComponent& libtorch) { return libtorch.samples(graph, data, unseen); });
}

void DataEngine::check_recovery(const RecoverySettings& settings) const {
  if (process() == nullptr) return;
  for (const RecoveryMethod method : settings.steps) {
    if (is_closed_form(method)) continue;
    throw UnsupportedError("the process that has the data does not train: --recover ",
                           name_of(method));
  }
}

Recovered DataEngine::recover(const Graph& original, const Plan& plan,
                              const RecoverySettings& settings, const CalibrationData& data,
                              const Say& say) const {
  if (ProcessEngine* process = this->process()) {
    process->share(original);
    return recover_on(*process, original, plan, settings, say);
  }
  std::string why = only_libtorch(original, data);
  if (!data.loss.empty()) why = "--loss";
  for (const RecoveryMethod method : settings.steps) {
    if (!is_closed_form(method)) why = "--recover " + std::string(name_of(method));
  }
  return either(
      why, [&](Engine& engine) { return recover_on(engine, original, plan, settings, data, say); },
      [&](TorchComponent& libtorch) {
        return libtorch.recover(original, plan, settings, data, say);
      });
}

namespace {

ErrorData random_data(const Graph& graph, const RandomInputSpec& order) {
  ErrorData data;
  for (int64_t i = 0; i < order.samples; ++i) {
    runtime::RandomInputOptions feed;
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
