#include <ATen/core/Tensor.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "parsimony/base/errors.h"
#include "parsimony/base/sha256.h"
#include "parsimony/cli/torch/jobs.h"
#include "parsimony/data/input_data.h"
#include "parsimony/graph/infer.h"
#include "parsimony/graph/interface.h"
#include "parsimony/torch_io/network.h"
#include "parsimony/torch_io/tensor.h"
#include "parsimony/training/loop/device.h"
#include "parsimony/training/loop/target_loss.h"

namespace parsimony::component {
namespace {

/// Side of the square images that the network's first input takes; nothing where it is open.
std::optional<int64_t> image_size(const Graph& graph) {
  if (graph.inputs.empty()) return {};
  const auto& dims = graph.value(graph.inputs.front()).declared;
  if (!dims || dims->size() != 4 || (*dims)[2] <= 0 || (*dims)[2] != (*dims)[3]) return {};
  return (*dims)[2];
}

Dataset dataset_of(const CalibrationData& job, const Graph& graph, bool whole) {
  DatasetOptions options;
  if (!whole) options.train_samples = job.samples;
  if (job.data.starts_with("folder:")) options.size = image_size(graph);
  options.mean = job.mean;
  options.deviation = job.deviation;
  return read_dataset(job.data, options);
}

/// @param given  do the data say what this output should be?
training::Loss loss_of(const CalibrationData& job, const Graph& graph,
                       const std::function<bool(size_t output)>& given) {
  if (job.loss.empty()) return {};
  std::vector<bool> targets;
  for (size_t o = 0; o < graph.outputs.size(); ++o) targets.push_back(given(o));
  return training::target_loss(graph, parse_losses(job.loss), targets);
}

/// Inputs that are states need no data: they begin with zeros.
training::Calibration calibration_of_inputs(const CalibrationData& job, const Graph& graph) {
  std::vector<InputSpec> specs = job.inputs;
  std::vector<training::FedBack> states;
  if (!job.states.empty()) {
    const Facts facts = infer_with_choice(graph, job.inputs).facts;
    InterfaceOptions wanted;
    wanted.states = job.states;
    const Interface interface = resolve(wanted, graph, facts);
    for (const StatePair& pair : interface.states) {
      const auto input = std::ranges::find(graph.inputs, pair.input);
      states.push_back({static_cast<size_t>(input - graph.inputs.begin()), pair.output,
                        graph.value(pair.output).name});
    }
  }
  InputSpec nothing;
  nothing.open = true;
  for (const training::FedBack& state : states) {
    if (specs.size() <= state.input) specs.resize(state.input + 1, nothing);
    if (!specs[state.input].value) specs[state.input].value = 0;
  }
  const auto data = std::make_shared<const InputData>(job.data, graph, specs, job.image);
  std::erase_if(states, [&](const training::FedBack& state) { return data->has(state.input); });
  training::Calibration result = training::calibration_of(data, job.samples);
  result.loss = loss_of(job, graph, [&](size_t output) {
    return data->has_target(output) || (output == 0 && data->labelled());
  });
  if (states.empty()) return result;
  result.batches = fed_back(graph, states, std::move(result.batches));
  if (result.held) result.held = fed_back(graph, states, std::move(result.held));
  return result;
}

/// Of the network that the ranks have, and of what they first run through it.
std::string fingerprint_of(const Graph& graph) {
  std::string text;
  for (const Weight& weight : graph.weights) {
    const at::Tensor values = torch_io::to_tensor(weight).contiguous();
    const std::string_view bytes(static_cast<const char*>(values.data_ptr()), values.nbytes());
    text += weight.name + to_string(weight.dims) + sha256(bytes) + "\n";
  }
  return text;
}

std::string fingerprint_of(const training::Calibration& data) {
  std::string text = std::to_string(data.samples);
  if (data.labelled) return text + data.labelled->fingerprint;
  if (const std::optional<training::SampleBatch> first = data.batches(1)()) {
    for (const TensorBytes& input : torch_io::to_bytes(first->inputs)) {
      text += sha256({reinterpret_cast<const char*>(input.bytes.data()), input.bytes.size()});
    }
  }
  return text;
}

training::Calibration calibration_of_dataset(const CalibrationData& job, const Graph& graph,
                                             bool whole) {
  training::Calibration result = training::calibration_of(
      std::make_shared<const Dataset>(dataset_of(job, graph, whole)), job.samples);
  result.loss = loss_of(job, graph, [](size_t output) { return output == 0; });
  return result;
}

}  // namespace

training::Calibration calibration_of(const CalibrationData& job, const Graph& graph, bool whole) {
  const bool arrays = InputData::is_source(job.data);
  if (arrays && !job.mean.empty()) {
    throw ConfigError(
        "--mean and --std are of images in 0..1; arrays by input name are used as they are");
  }
  const c10::Device device = training::parse_device(job.device);
  training::Calibration result =
      arrays ? calibration_of_inputs(job, graph) : calibration_of_dataset(job, graph, whole);
  result.batches = training::on_device(std::move(result.batches), device);
  result.held = training::on_device(std::move(result.held), device);
  return result;
}

training::Calibration calibration_of_ranks(const CalibrationData& job, const Graph& graph,
                                           bool whole) {
  if (job.ranks && !job.states.empty()) {
    throw UnsupportedError(
        "--states: samples of a sequence follow one another, and are not shared out among "
        "processes");
  }
  if (job.ranks) training::check_ranks(training::parse_device(job.device));
  training::Calibration result = calibration_of(job, graph, whole);
  if (!job.ranks) return result;
  static const training::RankGroup group(*job.ranks);  // serves all of a process's work
  group.agree("the version of parsimony", PARSIMONY_VERSION);
  group.agree("the network", fingerprint_of(graph));
  group.agree("the calibration data", fingerprint_of(result));
  result.ranks = &group;
  return result;
}

ErrorData calibration_samples(const CalibrationData& job, const Graph& graph, bool unseen) {
  constexpr int64_t kBatch = 64;
  const int64_t fixed = training::fixed_batch(graph);
  CalibrationData here = job;
  here.device = "cpu";
  const training::Calibration data = calibration_of(here, graph);
  const training::Batches test =
      data.labelled ? training::test_batches_of(data.labelled) : data.held;
  const training::Feed feed = (unseen && test ? test : data.batches)(fixed > 0 ? fixed : kBatch);
  constexpr size_t kMostBytes = 128 << 20;  // all stay in memory, with what they lead to
  ErrorData result;
  size_t bytes = 0;
  while (const std::optional<training::SampleBatch> batch = feed()) {
    if (fixed > 0 && batch->count != fixed) break;
    TensorList inputs = torch_io::to_bytes(batch->inputs);
    for (const TensorBytes& input : inputs) bytes += input.bytes.size();
    if (unseen && bytes > kMostBytes && !result.batches.empty()) break;
    for (size_t i = 0; i < inputs.size() && i < graph.inputs.size(); ++i) {
      inputs[i].name = graph.value(graph.inputs[i]).name;
    }
    result.batches.push_back(std::move(inputs));
    if (!batch->labels.defined()) continue;
    const at::Tensor labels = batch->labels.contiguous();
    const auto* values = labels.data_ptr<int64_t>();
    result.labels.insert(result.labels.end(), values, values + labels.numel());
  }
  return result;
}

}  // namespace parsimony::component
