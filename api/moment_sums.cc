#include "parsimony/api/moment_sums.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include "parsimony/api/network_error.h"
#include "parsimony/api/recovery/square_sums.h"
#include "parsimony/speedup/fit_layers.h"

namespace parsimony {
namespace {

// The limit for convolution windows in memory, in elements.
constexpr int64_t kMostElements = 16 << 20;

/// Returns how many numbers the rows of a sample are.
int64_t elements_of(const MatrixInput& input, const Shape& dims) {
  const Shape& weight = input.weight->dims;
  const bool convolves = input.kind == LinearKind::kConvolution;
  const int64_t kernel = convolves ? element_count({weight.begin() + 2, weight.end()}) : 1;
  const int64_t all = dims.empty() ? 1 : std::max<int64_t>(1, dims[0]);
  return std::max<int64_t>(1, element_count(dims) / all * kernel);
}

/// Returns the number of samples whose convolution windows are in memory at a time.
int64_t step_of(const MatrixInput& input, const Shape& dims) {
  const int64_t all = dims.empty() ? 1 : std::max<int64_t>(1, dims[0]);
  if (input.kind != LinearKind::kConvolution) return all;
  return std::clamp<int64_t>(kMostElements / elements_of(input, dims), 1, all);
}

EngineValue host_number(int64_t number) {
  TensorBytes tensor{"", DType::kInt64, {1}, {}};
  tensor.bytes.resize(sizeof number);
  std::memcpy(tensor.bytes.data(), &number, sizeof number);
  return host_value(std::move(tensor));
}

}  // namespace

MomentSums::MomentSums(Engine& engine, const Graph& graph, const std::set<std::string>& expected)
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

std::vector<ValueId> MomentSums::values() const {
  std::vector<ValueId> values;
  for (const MatrixInput& input : inputs_) values.push_back(input.value);
  return values;
}

void MomentSums::see(ValueId value, const EngineValues& batches, bool shared) {
  for (const MatrixInput& input : inputs_) {
    if (input.value == value && shared_.contains(input.weight->name) == shared) {
      add(input, batches);
    }
  }
}

void MomentSums::finish(Statistics& statistics) const {
  for (const auto& [name, moments] : moments_) {
    InputMoments& whole = statistics.inputs[name] = moments;
    const Eigen::Index in = whole.second.rows();
    for (Eigen::Index g = 0; g < whole.second.cols(); g += in) {
      mirror_squares(whole.second.middleCols(g, in));
    }
  }
}

int64_t MomentSums::bytes() const {
  int64_t bytes = 0;
  for (const auto& [name, moments] : moments_) {
    const Eigen::Index numbers = moments.second.size() + moments.sum.size();
    bytes += numbers * static_cast<int64_t>(sizeof(double));
  }
  return bytes;
}

/// Returns the memory of a run over so many samples: of the rows, twice, and half of the sums.
int64_t MomentSums::bytes_of(const MatrixInput& input, const Shape& dims, int64_t samples) const {
  const RowsOf what{graph_.node(input.node), input.weight->dims, input.operand};
  const int64_t columns = input_columns_of(what, dims);
  return 8 * samples * elements_of(input, dims) + 2 * columns * columns;
}

void MomentSums::add(const MatrixInput& input, const EngineValues& batches) {
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

Part& MomentSums::part_for(const MatrixInput& input, const EngineValue& x, bool in_parts) {
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

void MomentSums::add_sums(const MatrixInput& input, const TensorList& found) {
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

}  // namespace parsimony
