#include "parsimony/api/measure.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "parsimony/api/calibration_samples.h"
#include "parsimony/api/errors.h"
#include "parsimony/api/expert_contributions.h"
#include "parsimony/api/moment_sums.h"
#include "parsimony/api/network_error.h"
#include "parsimony/api/recovery/part.h"
#include "parsimony/api/recovery/row_sums.h"
#include "parsimony/api/taken_branches.h"
#include "parsimony/graph/infer.h"
#include "parsimony/pruners/activations.h"
#include "parsimony/pruners/layers.h"
#include "parsimony/speedup/fit_layers.h"

namespace parsimony {
namespace {

// The limit for activations of a run, in bytes.
constexpr int64_t kMostMeasured = int64_t{128} << 20;
constexpr int64_t kLargestRun = 64;

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

/// Returns a network with these outputs; of values in bodies with the nodes that run these.
Graph network_for(const Graph& graph, const std::vector<ValueId>& values) {
  std::vector<ValueId> needed = values;
  for (const ValueId v : values) {
    const NodeId producer = graph.value(v).producer;
    if (producer == kNone) continue;
    for (BodyId b = graph.node(producer).body; b != kNone; b = graph.bodies[b].around) {
      const std::vector<ValueId>& results = graph.node(graph.bodies[b].owner).outputs;
      std::ranges::copy_if(results, std::back_inserter(needed),
                           [](ValueId result) { return result != kNone; });
    }
  }
  Graph network = part_for(graph, needed);
  network.outputs = values;
  return network;
}

/// Returns a number of samples per run for which their values fit into memory.
int64_t batch_for(int64_t bytes) {
  return std::clamp<int64_t>(kMostMeasured / bytes, 1, kLargestRun);
}

}  // namespace

struct ForwardStatistics::State {
  State(Engine& of, const Graph& graph, const Facts& facts, const Coupling& coupling,
        const Needs& needs)
      : engine(of),
        activations(graph, facts, coupling, sites_of(graph, coupling), needs.channels),
        moments(engine, graph, needs.inputs),
        experts(engine, graph, facts, coupling, needs),
        network(network_for(graph, values(graph))),
        part(engine, network),
        bytes(bytes_each(graph, facts, network.outputs)) {
    for (const Group& group : coupling.groups) groups.push_back(group.id);
  }

  /// Leaves out those of branches that no output depends on.
  std::vector<ValueId> values(const Graph& graph) const {
    std::set<ValueId> seen;
    for (const ValueId v : activations.values()) seen.insert(v);
    for (const ValueId v : moments.values()) seen.insert(v);
    for (const ValueId v : experts.values()) seen.insert(v);
    const std::vector<NodeId> needed = nodes_for(graph, graph.outputs);  // ascending
    std::erase_if(seen, [&](ValueId v) {
      const NodeId producer = graph.value(v).producer;
      const bool inside = producer != kNone && graph.node(producer).body != kNone;
      return inside && !std::ranges::binary_search(needed, producer);
    });
    return {seen.begin(), seen.end()};
  }

  /// Adds runs that are made at once.
  void add(std::span<const MeasuredRun> runs);

  Engine& engine;
  ActivationSums activations;
  MomentSums moments;
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
  const Hoisted hoisted(graph, branches_taken(engine, graph, [&](const auto& see) {
                          const ForwardStatistics whole(engine, graph, facts, coupling, needs);
                          runs(whole.batch(),
                               [&](const EngineValues& inputs, int64_t) { see(inputs); });
                        }));
  ForwardStatistics forward(engine, hoisted.graph(), facts, coupling, needs);
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

int64_t bytes_each(const Graph& graph, const Facts& facts, const std::vector<ValueId>& values) {
  const auto& first = facts.shapes[graph.inputs.front()];
  const int64_t probed = first && !first->empty() ? first->front() : 1;
  int64_t bytes = 0;
  for (const ValueId v : values) {
    if (facts.shapes[v]) bytes += element_count(*facts.shapes[v]) * int64_t{sizeof(float)};
  }
  return std::max<int64_t>(1, bytes / std::max<int64_t>(1, probed));
}

bool is_forward(Measure measure) {
  return measure == Measure::kZeroShare || measure == Measure::kMeanActivation ||
         measure == Measure::kActivationNorm || measure == Measure::kRank ||
         measure == Measure::kContribution;
}

}  // namespace parsimony
