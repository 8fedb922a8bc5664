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
#include "parsimony/api/recovery/square_sums.h"
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

/// Returns the memory of these values for a sample, as far as their sizes are known; at least 1.
int64_t bytes_each(const Graph& graph, const Facts& facts, const std::vector<ValueId>& values) {
  const auto& first = facts.shapes[graph.inputs.front()];
  const int64_t probed = first && !first->empty() ? first->front() : 1;
  int64_t bytes = 0;
  for (const ValueId v : values) {
    if (facts.shapes[v]) bytes += element_count(*facts.shapes[v]) * int64_t{sizeof(float)};
  }
  return std::max<int64_t>(1, bytes / std::max<int64_t>(1, probed));
}

/// Returns a number of samples per run for which their values fit into memory.
int64_t batch_for(int64_t bytes) {
  return std::clamp<int64_t>(kMostMeasured / bytes, 1, kLargestRun);
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
    std::set<std::string> known;
    for (const MatrixInput& input : inputs_) {
      const std::string& name = input.weight->name;
      if (!known.insert(name).second) shared_.insert(name);
    }
  }

  bool empty() const { return inputs_.empty(); }
  std::vector<ValueId> values() const {
    std::vector<ValueId> values;
    for (const MatrixInput& input : inputs_) values.push_back(input.value);
    return values;
  }

  /// Sees a value's batches, in order. @param shared  for the matrices that have several inputs: as
  /// sums are in double, each batch is seen in all inputs before the next
  void see(ValueId value, const EngineValues& batches, bool shared) {
    for (const MatrixInput& input : inputs_) {
      if (input.value == value && shared_.contains(input.weight->name) == shared) {
        add(input, batches);
      }
    }
  }

  void finish(Statistics& statistics) const {
    for (const auto& [name, moments] : moments_) {
      InputMoments& whole = statistics.inputs[name] = moments;
      const Eigen::Index in = whole.second.rows();
      for (Eigen::Index g = 0; g < whole.second.cols(); g += in) {
        mirror_squares(whole.second.middleCols(g, in));
      }
    }
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
    return std::clamp<int64_t>(kMostElements / elements_of(input, dims), 1, all);
  }

  /// Returns how many numbers the rows of a sample are.
  static int64_t elements_of(const MatrixInput& input, const Shape& dims) {
    const Shape& weight = input.weight->dims;
    const bool convolves = input.kind == LinearKind::kConvolution;
    const int64_t kernel = convolves ? element_count({weight.begin() + 2, weight.end()}) : 1;
    const int64_t all = dims.empty() ? 1 : std::max<int64_t>(1, dims[0]);
    return std::max<int64_t>(1, element_count(dims) / all * kernel);
  }

  /// Returns the memory of a run over so many samples: of the rows, twice, and half of the sums.
  int64_t bytes_of(const MatrixInput& input, const Shape& dims, int64_t samples) const {
    const RowsOf what{graph_.node(input.node), input.weight->dims, input.operand};
    const int64_t columns = input_columns_of(what, dims);
    return 8 * samples * elements_of(input, dims) + 2 * columns * columns;
  }

  void add(const MatrixInput& input, const EngineValues& batches) {
    std::vector<std::pair<Part*, EngineValues>> runs;
    int64_t bytes = 0;  // of a run
    for (const EngineValue& x : batches) {
      const Shape dims = x->dims();
      const int64_t step = step_of(input, dims);
      bytes = std::max(bytes, bytes_of(input, dims, step));
      const bool in_parts = !dims.empty() && step < dims[0];
      Part& part = part_for(input, x, in_parts);
      if (!in_parts) runs.push_back({&part, {x}});
      for (int64_t begin = 0; in_parts && begin < dims[0]; begin += step) {
        runs.push_back({&part, {x, host_number(begin), host_number(begin + step)}});
      }
    }
    const size_t at_once = runs_at_once(engine_, bytes);
    for (size_t first = 0; first < runs.size(); first += at_once) {
      std::vector<TensorList> found(std::min(at_once, runs.size() - first));
      engine_.side_by_side(std::ssize(found), [&](int64_t r) {
        const auto& [part, inputs] = runs[first + static_cast<size_t>(r)];
        found[r] = on_host(part->run(inputs));
      });
      for (const TensorList& sums : found) add_sums(input, sums);
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
    ask_squares(graph, rows, input_columns_of(what, x->dims()));
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

  void add_sums(const MatrixInput& input, const TensorList& found) {
    const std::vector<int64_t> shape = numbers_of(found.front()).ints;  // groups, rows, columns
    InputMoments& moments = moments_[input.weight->name];
    moments.rows += shape[1];
    if (moments.second.size() == 0) moments.second.setZero(shape[2], shape[0] * shape[2]);
    const std::span blocks(found.data() + 1, square_outputs(shape[2]));
    for (int64_t g = 0; g < shape[0]; ++g) {
      add_squares(blocks, g, moments.second.middleCols(g * shape[2], shape[2]));
    }
    if (found.size() == blocks.size() + 1) return;
    const std::vector<double> sum = numbers_of(found.back()).floats;
    if (moments.sum.size() == 0) moments.sum.setZero(std::ssize(sum));
    moments.sum += Eigen::Map<const Eigen::VectorXd>(sum.data(), std::ssize(sum));
  }

  Engine& engine_;
  const Graph& graph_;
  const std::vector<MatrixInput> inputs_;
  std::set<std::string> shared_;    ///< weights that several layers read
  std::set<NodeId> have_constant_;  ///< layers with one that least squares fits, too
  std::map<Kind, Summing> known_;
  std::map<std::string, InputMoments> moments_;
};

struct ForwardStatistics::State {
  State(Engine& of, const Graph& graph, const Facts& facts, const Coupling& coupling,
        const Needs& needs)
      : engine(of),
        activations(graph, facts, coupling, sites_of(graph, coupling), needs.channels),
        moments(engine, graph, needs.inputs),
        experts(engine, graph, facts, coupling, needs),
        network(part_for(graph, values())),
        part(engine, network),
        bytes(bytes_each(graph, facts, network.outputs)) {
    for (const Group& group : coupling.groups) groups.push_back(group.id);
  }

  std::vector<ValueId> values() const {
    std::set<ValueId> seen;
    for (const ValueId v : activations.values()) seen.insert(v);
    for (const ValueId v : moments.values()) seen.insert(v);
    for (const ValueId v : experts.values()) seen.insert(v);
    return {seen.begin(), seen.end()};
  }

  /// Adds runs that are made at once.
  void add(std::span<const MeasuredRun> runs);

  Engine& engine;
  ActivationSums activations;
  Moments moments;
  ExpertContributions experts;
  Graph network;
  Part part;
  int64_t bytes;  ///< of a sample's values
  int64_t samples = 0;
  PerGroup<std::string> groups;
};

ForwardStatistics::ForwardStatistics(Engine& engine, const Graph& graph, const Facts& facts,
                                     const Coupling& coupling, const Needs& needs)
    : state_(std::make_unique<State>(engine, graph, facts, coupling, needs)) {}
ForwardStatistics::~ForwardStatistics() = default;

bool ForwardStatistics::empty() const { return state_->network.outputs.empty(); }

int64_t ForwardStatistics::batch() const { return batch_for(state_->bytes); }

void ForwardStatistics::add(std::span<const MeasuredRun> runs) {
  State& state = *state_;
  int64_t most = 0;
  for (const MeasuredRun& run : runs) {
    state.samples += run.samples;
    state.activations.add_samples(run.samples);
    most = std::max(most, run.samples);
  }
  if (empty()) return;
  const size_t at_once = runs_at_once(state.engine, most * state.bytes);
  for (size_t first = 0; first < runs.size(); first += at_once) {
    state.add(runs.subspan(first, std::min(at_once, runs.size() - first)));
  }
}

/// How many runs there are at once changes no sum: what several values add to takes a run after the
/// other.
void ForwardStatistics::State::add(std::span<const MeasuredRun> runs) {
  std::vector<EngineValues> found(runs.size());
  engine.side_by_side(std::ssize(runs), [&](int64_t r) { found[r] = part.run(runs[r].inputs); });
  for (size_t i = 0; i < network.outputs.size(); ++i) {
    EngineValues batches;
    for (const EngineValues& of_run : found) {  // null in a branch that did not run
      if (of_run[i] != nullptr) batches.push_back(of_run[i]);
    }
    moments.see(network.outputs[i], batches, /*shared=*/false);
  }
  for (const EngineValues& of_run : found) {
    experts.add(network.outputs, of_run);
    for (size_t i = 0; i < of_run.size(); ++i) {
      if (of_run[i] == nullptr) continue;
      const ValueId value = network.outputs[i];
      moments.see(value, {of_run[i]}, /*shared=*/true);
      if (activations.observes(value)) parsimony::see(activations, value, of_run[i]->to_host());
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
  std::vector<MeasuredRun> group;
  const auto add_group = [&] {
    forward.add(group);
    group.clear();
  };
  runs(forward.batch(), [&](const EngineValues& inputs, int64_t samples) {
    group.push_back({inputs, samples});
    if (std::ssize(group) == engine.at_once()) add_group();
  });
  add_group();
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
      batch_(batch_for(bytes_each(graph, infer(graph, choose_probe(graph)), network_.outputs))),
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
