#include "parsimony/api/measure.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "parsimony/api/calibration_samples.h"
#include "parsimony/api/errors.h"
#include "parsimony/api/network_error.h"
#include "parsimony/api/recovery/engine_refit.h"
#include "parsimony/api/recovery/row_sums.h"
#include "parsimony/pruners/activations.h"
#include "parsimony/pruners/sites.h"
#include "parsimony/speedup/fit_layers.h"

namespace parsimony {
namespace {

// Of a run's activations, all of which come back at once.
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

/// Second moments of the inputs of matrices, made by the engine run by run.
class MomentSums {
 public:
  MomentSums(Engine& engine, const Graph& graph, const std::set<std::string>& wanted)
      : engine_(engine), graph_(graph), inputs_(matrix_inputs(graph, wanted)) {}

  std::vector<ValueId> values() const {
    std::vector<ValueId> values;
    for (const MatrixInput& input : inputs_) values.push_back(input.value);
    return values;
  }

  void see(ValueId value, const Held& x) {
    for (const MatrixInput& input : inputs_) {
      if (input.value == value) add(input, x);
    }
  }

  void finish(Statistics& statistics) const {
    for (const auto& [name, moments] : moments_) statistics.inputs[name] = moments;
  }

 private:
  struct Summing {
    GraphBuilder builder{kSumsOpset};
    std::unique_ptr<Part> part;
  };

  void add(const MatrixInput& input, const Held& x) {
    const auto [place, is_new] =
        known_.try_emplace({input.node, input.weight->name, sample_dims(x)});
    Summing& summing = place->second;
    if (is_new) {
      GraphBuilder& graph = summing.builder;
      const ValueId data = input_in_floats(graph, bytes_in(x).dtype);
      const RowsOf what{graph_.node(input.node), input.weight->dims, input.operand};
      const ValueId rows = rows_of(graph, what, data, bytes_in(x).dims);
      graph.output(sizes_of(graph, rows));
      graph.output(products(graph, rows, rows));
      summing.part = part_on(engine_, graph.finished());
    }
    const std::vector<Held> found = summing.part->run({x});
    const HostTensor shape = numbers_of(bytes_in(found[0]));
    const std::vector<double> products = numbers_of(bytes_in(found[1])).floats;
    InputMoments& moments = moments_[input.weight->name];
    moments.rows += shape.ints[1];
    // Symmetric blocks one after the other are, read by columns, blocks side by side.
    const Eigen::Map<const Eigen::MatrixXd> second(products.data(), shape.ints[2],
                                                   shape.ints[0] * shape.ints[2]);
    if (moments.second.size() == 0) {
      moments.second = second;
    } else {
      moments.second += second;
    }
  }

  Engine& engine_;
  const Graph& graph_;
  const std::vector<MatrixInput> inputs_;
  std::map<std::tuple<NodeId, std::string, Shape>, Summing> known_;  ///< last: of a sample
  std::map<std::string, InputMoments> moments_;
};

/// Bytes of these values for one sample, as far as they are known.
int64_t bytes_of(const Facts& facts, const std::vector<ValueId>& values, int64_t batch) {
  int64_t bytes = 0;
  for (const ValueId v : values) {
    if (facts.shapes[v]) bytes += element_count(*facts.shapes[v]) * int64_t{sizeof(float)};
  }
  return std::max<int64_t>(1, bytes / std::max<int64_t>(1, batch));
}

}  // namespace

Statistics measure_on(Engine& engine, const Graph& graph, const Facts& facts,
                      const Coupling& coupling, const Needs& needs, const CalibrationData& job) {
  const CalibrationSamples samples(job, graph);
  ActivationSums activations(graph, facts, coupling, sites_of(graph, coupling), needs.channels);
  MomentSums moments(engine, graph, needs.inputs);
  std::set<ValueId> seen;
  for (const ValueId v : activations.values()) seen.insert(v);
  for (const ValueId v : moments.values()) seen.insert(v);
  const Graph part = part_for(graph, {seen.begin(), seen.end()});
  const std::unique_ptr<Part> opened = part_on(engine, part);
  const auto& first = facts.shapes[graph.inputs.front()];
  const int64_t probed = first && !first->empty() ? first->front() : 1;
  const int64_t fit = kMostMeasured / bytes_of(facts, part.outputs, probed);
  Statistics statistics;
  for (const Group& group : coupling.groups) statistics.groups.push_back(group.id);
  samples.for_each(
      false, std::clamp<int64_t>(fit, 1, kLargestRun), [&](int64_t begin, int64_t count) {
        const std::vector<Held> found = opened->run(held(samples.data().inputs(begin, count)));
        for (size_t i = 0; i < found.size(); ++i) {
          const ValueId value = part.outputs[i];
          moments.see(value, found[i]);
          if (activations.observes(value)) see(activations, value, bytes_in(found[i]));
        }
        activations.add_samples(count);
        statistics.samples += count;
      });
  if (statistics.samples == 0) throw errors::no_calibration_data(samples.batch(1));
  activations.finish(statistics);
  moments.finish(statistics);
  return statistics;
}

bool is_forward(Measure measure) {
  return measure == Measure::kZeroShare || measure == Measure::kMeanActivation ||
         measure == Measure::kActivationNorm || measure == Measure::kRank;
}

}  // namespace parsimony
