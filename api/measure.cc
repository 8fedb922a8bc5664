#include "parsimony/api/measure.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "parsimony/api/calibration_samples.h"
#include "parsimony/api/errors.h"
#include "parsimony/api/expert_contributions.h"
#include "parsimony/api/network_error.h"
#include "parsimony/api/recovery/fit_sums.h"
#include "parsimony/api/recovery/part.h"
#include "parsimony/api/recovery/row_sums.h"
#include "parsimony/graph/infer.h"
#include "parsimony/pruners/activations.h"
#include "parsimony/pruners/layers.h"
#include "parsimony/speedup/fit_layers.h"

namespace parsimony {
namespace {

// The limit for activations of a run, in bytes.
constexpr int64_t kMostMeasured = int64_t{128} << 20;
constexpr int64_t kLargestRun = 64;
// The limit for convolution windows in memory, in elements.
constexpr int64_t kMostElements = 16 << 20;

void see(ActivationSums& activations, ValueId value, const TensorBytes& x) {
  if (x.dtype == DType::kFloat32) {
    return activations.see(value, {reinterpret_cast<const float*>(x.bytes.data()), x.dims});
  }
  const HostTensor numbers = numbers_of(x);
  std::vector<float> floats(static_cast<size_t>(numbers.count()));
  for (size_t i = 0; i < floats.size(); ++i) {
    floats[i] = static_cast<float>(numbers.number(static_cast<int64_t>(i)));
  }
  activations.see(value, {floats.data(), x.dims});
}

/// Returns a number of samples per run for which these values fit into memory, as far as their
/// sizes are known.
int64_t batch_for(const Graph& graph, const Facts& facts, const std::vector<ValueId>& values) {
  const auto& first = facts.shapes[graph.inputs.front()];
  const int64_t probed = first && !first->empty() ? first->front() : 1;
  int64_t bytes = 0;
  for (const ValueId v : values) {
    if (facts.shapes[v]) bytes += element_count(*facts.shapes[v]) * int64_t{sizeof(float)};
  }
  const int64_t each = std::max<int64_t>(1, bytes / std::max<int64_t>(1, probed));
  return std::clamp<int64_t>(kMostMeasured / each, 1, kLargestRun);
}

}  // namespace

/// Second moments of the inputs of matrices.
class ForwardStatistics::Moments {
 public:
  Moments(Engine& engine, const Graph& graph, const std::set<std::string>& expected)
      : engine_(engine), graph_(graph), inputs_(matrix_inputs(graph, expected)) {
    if (inputs_.empty()) return;
    for (const FitLayer& layer : fit_layers(graph)) {
      if (layer.shift != kNone) have_constant_.insert(layer.node);
    }
  }

  bool empty() const { return inputs_.empty(); }
  std::vector<ValueId> values() const {
    std::vector<ValueId> values;
    for (const MatrixInput& input : inputs_) values.push_back(input.value);
    return values;
  }

  void see(ValueId value, const EngineValue& x) {
    for (const MatrixInput& input : inputs_) {
      if (input.value == value) add(input, x);
    }
  }

  void finish(Statistics& statistics) const {
    for (const auto& [name, moments] : moments_) statistics.inputs[name] = moments;
  }

  int64_t bytes() const {
    int64_t bytes = 0;
    for (const auto& [name, moments] : moments_) {
      const Eigen::Index numbers = moments.second.size() + moments.sum.size();
      bytes += numbers * static_cast<int64_t>(sizeof(double));
    }
    return bytes;
  }

 private:
  struct Kind {
    NodeId node = kNone;
    std::string weight;
    Shape sample;
    bool in_parts = false;
    auto operator<=>(const Kind&) const = default;
  };
  struct Summing {
    GraphBuilder builder{kSumsOpset};
    std::unique_ptr<Part> part;
  };

  /// Returns the number of samples whose convolution windows are in memory at a time.
  static int64_t step_of(const MatrixInput& input, const Shape& dims) {
    const int64_t all = dims.empty() ? 1 : std::max<int64_t>(1, dims[0]);
    if (input.kind != LinearKind::kConvolution) return all;
    const Shape& weight = input.weight->dims;
    const int64_t kernel = element_count({weight.begin() + 2, weight.end()});
    const int64_t each = std::max<int64_t>(1, element_count(dims) / all * kernel);
    return std::clamp<int64_t>(kMostElements / each, 1, all);
  }

  void add(const MatrixInput& input, const EngineValue& x) {
    const Shape dims = x->dims();
    const int64_t step = step_of(input, dims);
    const bool in_parts = !dims.empty() && step < dims[0];
    Part& part = part_for(input, x, in_parts);
    if (!in_parts) return add(input, on_host(part.run({x})));
    for (int64_t begin = 0; begin < dims[0]; begin += step) {
      add(input, on_host(part.run({x, host_number(begin), host_number(begin + step)})));
    }
  }

  Part& part_for(const MatrixInput& input, const EngineValue& x, bool in_parts) {
    const auto [place, is_new] =
        known_.try_emplace({input.node, input.weight->name, sample_dims(x), in_parts});
    Summing& summing = place->second;
    if (!is_new) return *summing.part;
    GraphBuilder& graph = summing.builder;
    ValueId data = input_in_floats(graph, x->dtype());
    if (in_parts) {
      const ValueId begin = graph.input("begin", DType::kInt64);
      const ValueId end = graph.input("end", DType::kInt64);
      data = samples_of(graph, data, begin, end);
    }
    const RowsOf what{graph_.node(input.node), input.weight->dims, input.operand};
    const ValueId rows = input_rows_of(graph, what, data, x->dims());
    graph.output(sizes_of(graph, rows));
    graph.output(products(graph, rows, rows));
    if (have_constant_.contains(input.node)) graph.output(sum_of_rows(graph, rows));
    summing.part = std::make_unique<Part>(engine_, graph.finished());
    return *summing.part;
  }

  static EngineValue host_number(int64_t number) {
    TensorBytes tensor{"", DType::kInt64, {1}, {}};
    tensor.bytes.resize(sizeof number);
    std::memcpy(tensor.bytes.data(), &number, sizeof number);
    return host_value(std::move(tensor));
  }

  void add(const MatrixInput& input, const TensorList& found) {
    const HostTensor shape = numbers_of(found[0]);
    const std::vector<double> products = numbers_of(found[1]).floats;
    InputMoments& moments = moments_[input.weight->name];
    moments.rows += shape.ints[1];
    // Consecutive symmetric blocks, read by columns, are blocks next to each other.
    const Eigen::Map<const Eigen::MatrixXd> second(products.data(), shape.ints[2],
                                                   shape.ints[0] * shape.ints[2]);
    add_to(moments.second, second);
    if (found.size() < 3) return;
    const std::vector<double> sum = numbers_of(found[2]).floats;
    add_to(moments.sum, Eigen::Map<const Eigen::VectorXd>(sum.data(), std::ssize(sum)));
  }

  template <typename Sum, typename Values>
  static void add_to(Sum& sum, const Values& values) {
    if (sum.size() == 0) {
      sum = values;
    } else {
      sum += values;
    }
  }

  Engine& engine_;
  const Graph& graph_;
  const std::vector<MatrixInput> inputs_;
  std::set<NodeId> have_constant_;  ///< layers with one that least squares fits, too
  std::map<Kind, Summing> known_;
  std::map<std::string, InputMoments> moments_;
};

struct ForwardStatistics::State {
  State(Engine& engine, const Graph& graph, const Facts& facts, const Coupling& coupling,
        const Needs& needs)
      : activations(graph, facts, coupling, sites_of(graph, coupling), needs.channels),
        moments(engine, graph, needs.inputs),
        experts(engine, graph, facts, coupling, needs),
        network(part_for(graph, values())),
        part(engine, network),
        batch(batch_for(graph, facts, network.outputs)) {
    for (const Group& group : coupling.groups) groups.push_back(group.id);
  }

  std::vector<ValueId> values() const {
    std::set<ValueId> seen;
    for (const ValueId v : activations.values()) seen.insert(v);
    for (const ValueId v : moments.values()) seen.insert(v);
    for (const ValueId v : experts.values()) seen.insert(v);
    return {seen.begin(), seen.end()};
  }

  ActivationSums activations;
  Moments moments;
  ExpertContributions experts;
  Graph network;
  Part part;
  int64_t batch;
  int64_t samples = 0;
  PerGroup<std::string> groups;
};

ForwardStatistics::ForwardStatistics(Engine& engine, const Graph& graph, const Facts& facts,
                                     const Coupling& coupling, const Needs& needs)
    : state_(std::make_unique<State>(engine, graph, facts, coupling, needs)) {}
ForwardStatistics::~ForwardStatistics() = default;

bool ForwardStatistics::empty() const { return state_->network.outputs.empty(); }

int64_t ForwardStatistics::batch() const { return state_->batch; }

void ForwardStatistics::add(const EngineValues& inputs, int64_t samples) {
  State& state = *state_;
  state.samples += samples;
  state.activations.add_samples(samples);
  if (empty()) return;
  const EngineValues found = state.part.run(inputs);
  state.experts.add(state.network.outputs, found);
  for (size_t i = 0; i < found.size(); ++i) {
    if (found[i] == nullptr) continue;  // of a branch that did not run
    const ValueId value = state.network.outputs[i];
    state.moments.see(value, found[i]);
    if (state.activations.observes(value)) {
      parsimony::see(state.activations, value, found[i]->to_host());
    }
  }
}

void ForwardStatistics::finish(Statistics& statistics) const {
  statistics.samples = state_->samples;
  statistics.groups = state_->groups;
  state_->activations.finish(statistics);
  state_->moments.finish(statistics);
  state_->experts.finish(statistics);
}

int64_t ForwardStatistics::bytes() const {
  return state_->activations.bytes() + state_->moments.bytes() + state_->experts.bytes();
}

Runs runs_of(const CalibrationData& data, const Graph& graph) {
  const auto samples = std::make_shared<const CalibrationSamples>(data, graph);
  return [samples](int64_t requested, const SeeRun& see) {
    bool any = false;
    samples->for_each(false, requested, [&](int64_t first, int64_t count) {
      see(host_values(samples->data().inputs(first, count)), count);
      any = true;
    });
    if (!any) throw errors::no_calibration_data(samples->batch(1));
  };
}

Statistics measure_on(Engine& engine, const Graph& graph, const Facts& facts,
                      const Coupling& coupling, const Needs& needs, const Runs& runs) {
  ForwardStatistics forward(engine, graph, facts, coupling, needs);
  runs(forward.batch(),
       [&](const EngineValues& inputs, int64_t samples) { forward.add(inputs, samples); });
  Statistics statistics;
  forward.finish(statistics);
  return statistics;
}

namespace {

std::vector<ValueId> ends_of(const std::vector<ResidualBlock>& blocks) {
  std::set<ValueId> ends;
  for (const ResidualBlock& block : blocks) {
    ends.insert(block.input);
    ends.insert(block.output);
  }
  return {ends.begin(), ends.end()};
}

}  // namespace

BlockInfluences::BlockInfluences(Engine& engine, const Graph& graph,
                                 const std::vector<ResidualBlock>& blocks)
    : engine_(engine),
      blocks_(blocks),
      network_(part_for(graph, ends_of(blocks))),
      part_(engine, network_),
      batch_(batch_for(graph, infer(graph, choose_probe(graph)), network_.outputs)),
      sums_(blocks.size()) {}

void BlockInfluences::add(const EngineValues& inputs) {
  const EngineValues found = part_.run(inputs);
  const auto value = [&](ValueId v) {
    return found[std::ranges::lower_bound(network_.outputs, v) - network_.outputs.begin()];
  };
  for (size_t b = 0; b < blocks_.size(); ++b) {
    const ResidualBlock& block = blocks_[b];
    const EngineValue x = value(block.input);
    const EngineValue y = value(block.output);
    if (!is_floating(x->dtype())) continue;
    Block& sums = sums_[b];
    if (!sums.part) {
      GraphBuilder& graph = sums.builder;
      const ValueId in = graph.input("x", x->dtype());
      const ValueId out = graph.input("y", y->dtype());
      sum_cosines(graph, in, out, block.channel_axis, block.rectified);
      sums.part = std::make_unique<Part>(engine_, graph.finished());
    }
    const TensorList results = on_host(sums.part->run({x, y}));
    sums.sum += numbers_of(results[0]).floats.front();
    sums.count += numbers_of(results[1]).ints.front();
  }
}

std::vector<double> BlockInfluences::result() const {
  std::vector<double> influences;
  for (const Block& block : sums_) {
    influences.push_back(block.count > 0 ? 1 - block.sum / static_cast<double>(block.count)
                                         : std::numeric_limits<double>::infinity());
  }
  return influences;
}

std::vector<double> block_influences_on(Engine& engine, const Graph& graph,
                                        const std::vector<ResidualBlock>& blocks,
                                        const Runs& runs) {
  BlockInfluences influences(engine, graph, blocks);
  runs(influences.batch(),
       [&](const EngineValues& inputs, int64_t /*samples*/) { influences.add(inputs); });
  return influences.result();
}

bool is_forward(Measure measure) {
  return measure == Measure::kZeroShare || measure == Measure::kMeanActivation ||
         measure == Measure::kActivationNorm || measure == Measure::kRank ||
         measure == Measure::kContribution;
}

}  // namespace parsimony
