#include <ATen/core/Tensor.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "parsimony/api/calibration_samples.h"
#include "parsimony/base/errors.h"
#include "parsimony/base/hash.h"
#include "parsimony/cli/torch/jobs.h"
#include "parsimony/data/sample_source.h"
#include "parsimony/graph/infer.h"
#include "parsimony/graph/interface.h"
#include "parsimony/torch_io/network.h"
#include "parsimony/torch_io/tensor.h"
#include "parsimony/training/loop/device.h"
#include "parsimony/training/loop/target_loss.h"

namespace parsimony::component {
namespace {

/// @param given  whether the data has targets for this output
training::Loss loss_of(const CalibrationData& job, const Graph& graph,
                       const std::function<bool(size_t output)>& given) {
  if (job.loss.empty()) return {};
  std::vector<bool> targets;
  for (size_t o = 0; o < graph.outputs.size(); ++o) targets.push_back(given(o));
  return training::target_loss(graph, parse_losses(job.loss), targets);
}

std::vector<training::FedBack> states_of(const CalibrationData& job, const Graph& graph) {
  std::vector<training::FedBack> states;
  if (job.states.empty()) return states;
  const Facts facts = infer_with_choice(graph, job.inputs).facts;
  InterfaceOptions requested;
  requested.states = job.states;
  const Interface interface = resolve(requested, graph, facts);
  for (const StatePair& pair : interface.states) {
    const auto input = std::ranges::find(graph.inputs, pair.input);
    states.push_back({static_cast<size_t>(input - graph.inputs.begin()), pair.output,
                      graph.value(pair.output).name});
  }
  return states;
}

using SharedSource = std::shared_ptr<const SampleSource>;

/// Opens the data. Inputs that are states need none: they begin with zeros.
SharedSource open_data(const CalibrationData& job, const Graph& graph,
                       const std::vector<training::FedBack>& states, bool whole) {
  SampleOptions options = sample_options(job, whole);
  std::vector<InputSpec>& specs = options.inputs;
  specs = by_position(specs, graph);
  InputSpec nothing;
  nothing.open = true;
  for (const training::FedBack& state : states) {
    if (specs.size() <= state.input) specs.resize(state.input + 1, nothing);
    if (!specs[state.input].value) specs[state.input].value = 0;
  }
  return std::make_shared<const SampleSource>(job.data, graph, std::move(options));
}

training::Calibration calibration_from(const SharedSource& data, const CalibrationData& job,
                                       const Graph& graph, std::vector<training::FedBack> states,
                                       c10::Device device) {
  training::Calibration result = training::calibration_of(data, job.calibrating(data->samples()));
  result.loss = loss_of(job, graph, [&](size_t output) {
    return data->has_target(output) || (output == 0 && data->labelled());
  });
  const HeldOutSamples judging(*data, result.samples, job.judges);
  if (job.judges && judging.count > 0) {
    result.held_out_samples = judging.count;
    result.held_out = training::batches_of(data, judging.count, judging.begin);
  }
  std::erase_if(states, [&](const training::FedBack& state) { return data->has(state.input); });
  if (!states.empty()) {
    result.batches = fed_back(graph, states, std::move(result.batches));
    if (result.held_out) result.held_out = fed_back(graph, states, std::move(result.held_out));
  }
  result.batches = training::on_device(std::move(result.batches), device);
  result.held_out = training::on_device(std::move(result.held_out), device);
  return result;
}

/// Fingerprints the network of the ranks and the inputs of its first run.
std::string fingerprint_of(const Graph& graph) {
  std::string text;
  for (const Weight& weight : graph.weights) {
    const at::Tensor values = torch_io::to_tensor(weight).contiguous();
    const std::string_view bytes(static_cast<const char*>(values.data_ptr()), values.nbytes());
    text += weight.name + to_string(weight.dims) + sha256(bytes) + "\n";
  }
  return text;
}

}  // namespace

training::Calibration calibration_of(const CalibrationData& job, const Graph& graph, bool whole) {
  const c10::Device device = training::parse_device(job.device);
  const std::vector<training::FedBack> states = states_of(job, graph);
  return calibration_from(open_data(job, graph, states, whole), job, graph, states, device);
}

training::Calibration calibration_of_ranks(const CalibrationData& job, const Graph& graph,
                                           bool whole) {
  if (!job.ranks) return calibration_of(job, graph, whole);
  if (!job.states.empty()) {
    throw UnsupportedError(
        "--states cannot be combined with several processes: samples of a sequence must be "
        "processed in order");
  }
  const c10::Device device = training::parse_device(job.device);
  training::check_ranks(device);
  const SharedSource data = open_data(job, graph, {}, whole);
  training::Calibration result = calibration_from(data, job, graph, {}, device);
  static const training::RankGroup group(*job.ranks);  // reused by all later work of the process
  group.agree("the version of parsimony", PARSIMONY_VERSION);
  group.agree("the network", fingerprint_of(graph));
  group.agree("the calibration data", std::to_string(result.samples) + data->fingerprint());
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
      data.labelled ? training::test_batches_of(data.labelled) : data.held_out;
  const training::BatchSource feed =
      (unseen && test ? test : data.batches)(fixed > 0 ? fixed : kBatch);
  constexpr size_t kMostBytes = 128 << 20;  // all stay in memory, with their outputs
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
