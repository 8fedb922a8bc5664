#include "parsimony/api/recovery/recurrence.h"

#include <cstring>
#include <limits>
#include <utility>

#include "parsimony/graph/attributes.h"
#include "parsimony/graph/operators/schema.h"

namespace parsimony {
namespace {

using Ints = std::vector<int64_t>;

constexpr int64_t kEnd = std::numeric_limits<int64_t>::max();

bool is_batch_first(const Node& node) { return attr(node, "layout", 0) == 1; }

const Node& node_of(const Graph& graph, ValueId value) {
  return graph.nodes[producers_of(graph)[value]];
}

/// Returns the operand with the initial state.
ValueId initial_of(const Node& node) {
  const auto i = static_cast<size_t>(schema_of(node).recurrence.initial);
  return i < node.inputs.size() ? node.inputs[i] : kNone;
}

ValueId constant(GraphBuilder& graph, Shape dims, const std::vector<float>& numbers) {
  std::vector<std::byte> bytes(numbers.size() * sizeof(float));
  std::memcpy(bytes.data(), numbers.data(), bytes.size());
  return graph.tensor(graph.unused_name(), DType::kFloat32, std::move(dims), std::move(bytes));
}

ValueId sliced(GraphBuilder& graph, ValueId x, int64_t axis, int64_t begin, int64_t end) {
  return graph.emit("Slice",
                    {x, graph.integers({begin}), graph.integers({end}), graph.integers({axis})});
}

ValueId joined(GraphBuilder& graph, std::vector<ValueId> parts, int64_t axis) {
  if (parts.size() == 1) return parts.front();
  return graph.emit("Concat", std::move(parts), {{"axis", axis}});
}

ValueId transposed(GraphBuilder& graph, ValueId x, Ints order) {
  return graph.emit("Transpose", {x}, {{"perm", std::move(order)}});
}

ValueId reshaped(GraphBuilder& graph, ValueId x, const Ints& dims) {
  return graph.emit("Reshape", {x, graph.integers(dims)});
}

}  // namespace

std::vector<ValueId> recurrent_reads(const Graph& dense, const FitLayer& layer) {
  const Node& node = node_of(dense, layer.answer);
  std::vector<ValueId> values = {layer.answer, node.inputs[0]};
  const ValueId initial = initial_of(node);
  if (initial != kNone && dense.value(initial).weight == kNone) values.push_back(initial);
  return values;
}

RecurrentFit::RecurrentFit(Engine& engine, const Graph& dense, SmallNetwork& small,
                           const FitLayer& layer, bool weights)
    : engine_(engine),
      dense_graph_(dense),
      small_network_(small),
      layer_(layer),
      fits_weights_(weights),
      node_(node_of(dense, layer.answer)),
      directions_(attr(node_, "direction", "forward") == std::string("bidirectional") ? 2 : 1),
      dense_(weights_of(dense, node_)),
      small_(weights_of(small.graph(), small.graph().node(layer.node))),
      kept_state_(kept_channels(small, layer)),
      both_(directions_, weights, layer.shift != kNone),
      input_(directions_, weights, layer.shift != kNone),
      state_(directions_, weights, false) {
  const std::string& name = small.graph().weight(layer.weight).name;
  const Ints rows = small.kept(name, layer.out_axis);
  for (Matrices* all : {&dense_.input, &dense_.state, &dense_.shift}) {
    if (rows.empty() || all->numbers.empty()) continue;
    Matrices kept{std::ssize(rows), all->columns, {}};
    for (int64_t d = 0; d < directions_; ++d) {
      for (const int64_t row : rows) {
        const auto begin = all->numbers.begin() + (d * all->rows + row) * all->columns;
        kept.numbers.insert(kept.numbers.end(), begin, begin + all->columns);
      }
    }
    *all = std::move(kept);
  }
  if (schema_of(node_).recurrence.resets) apart_ = small_.state.columns;
  together_ = small_.input.rows - apart_;
}

RecurrentFit::Weights RecurrentFit::weights_of(const Graph& graph, const Node& node) const {
  const auto matrices = [&](size_t operand, int64_t rows) {
    const Weight& weight = graph.weight_of(node.inputs[operand]);
    const HostTensor values = to_host(weight);
    return Matrices{
        rows, values.count() / (rows * directions_), {values.floats.begin(), values.floats.end()}};
  };
  const Shape& dims = graph.weight_of(node.inputs[1]).dims;
  const int64_t rows = dims[dims.size() - 2];
  Weights result{matrices(1, rows), matrices(2, rows), {}};
  if (layer_.shift == kNone) return result;
  // The row of the state may follow.
  const Matrices all = matrices(3, rows);
  result.shift = {rows, 1, {}};
  for (int64_t d = 0; d < directions_; ++d) {
    const auto begin = all.numbers.begin() + d * rows * all.columns;
    result.shift.numbers.insert(result.shift.numbers.end(), begin, begin + rows);
  }
  return result;
}

/// Returns x [t n i] or [n t i] as [d, t·n, i].
ValueId RecurrentFit::input_rows(GraphBuilder& graph, ValueId x, int64_t columns) const {
  const ValueId steps = is_batch_first(node_) ? transposed(graph, x, {1, 0, 2}) : x;
  const ValueId rows = reshaped(graph, steps, {1, -1, columns});
  return joined(graph, std::vector<ValueId>(static_cast<size_t>(directions_), rows), 0);
}

/// Returns the states before each step, [d, t·n, h], from y [t d n h], [n t d h] or [t n h].
ValueId RecurrentFit::states_before(GraphBuilder& graph, ValueId steps, size_t rank,
                                    ValueId initial) const {
  const int64_t units = dense_.state.columns;
  const bool batch_first = is_batch_first(node_);
  if (rank == 3) {
    steps = graph.emit("Unsqueeze", {steps, graph.integers({0})});
  } else {
    steps = transposed(graph, steps, batch_first ? Ints{2, 1, 0, 3} : Ints{1, 0, 2, 3});
  }  // [d t n h]
  if (initial != kNone) {
    if (batch_first) initial = transposed(graph, initial, {1, 0, 2});
    initial = reshaped(graph, initial, {directions_, 1, -1, units});
  }
  const std::string direction = attr(node_, "direction", "forward");
  std::vector<ValueId> before;
  for (int64_t d = 0; d < directions_; ++d) {
    const ValueId own = directions_ == 1 ? steps : sliced(graph, steps, 0, d, d + 1);
    const bool backward = direction == "reverse" || d == 1;
    const ValueId others = backward ? sliced(graph, own, 1, 1, kEnd) : sliced(graph, own, 1, 0, -1);
    if (initial == kNone) {
      const Ints zeros = {0, backward ? 0 : 1, 0, 0, 0, backward ? 1 : 0, 0, 0};
      before.push_back(graph.emit("Pad", {others, graph.integers(zeros)}));
      continue;
    }
    const ValueId begin = directions_ == 1 ? initial : sliced(graph, initial, 0, d, d + 1);
    before.push_back(joined(
        graph, backward ? std::vector<ValueId>{others, begin} : std::vector<ValueId>{begin, others},
        1));
  }
  return reshaped(graph, joined(graph, std::move(before), 0), {directions_, -1, units});
}

/// Multiplies [d, rows, n] by each matrix.
ValueId RecurrentFit::times(GraphBuilder& graph, ValueId rows, const Matrices& matrices) const {
  std::vector<float> turned(matrices.numbers.size());
  const auto [out, in] = std::pair(matrices.rows, matrices.columns);
  for (int64_t d = 0; d < directions_; ++d) {
    for (int64_t o = 0; o < out; ++o) {
      for (int64_t i = 0; i < in; ++i) {
        turned[(d * in + i) * out + o] = matrices.numbers[(d * out + o) * in + i];
      }
    }
  }
  return graph.emit("MatMul", {rows, constant(graph, {directions_, in, out}, turned)});
}

Part& RecurrentFit::part_for(const Kind& kind, const EngineValue& x, const EngineValues& dense) {
  const auto [place, is_new] = known_.try_emplace(kind);
  Summing& summing = place->second;
  if (!is_new) return *summing.part;
  GraphBuilder& graph = summing.builder;
  const ValueId own_data = input_in_floats(graph, x->dtype());
  const ValueId steps = input_in_floats(graph, dense[0]->dtype());
  const ValueId data = input_in_floats(graph, dense[1]->dtype());
  ValueId initial = kNone;
  if (dense.size() > 2) {
    initial = input_in_floats(graph, dense[2]->dtype());
  } else if (const ValueId value = initial_of(node_); value != kNone) {
    const Weight& weight = dense_graph_.weight_of(value);
    const HostTensor values = to_host(weight);
    initial = constant(graph, weight.dims, {values.floats.begin(), values.floats.end()});
  }
  const ValueId states = states_before(graph, steps, kind.rank, initial);
  const ValueId own_states = channels_of(graph, states, 2, kept_state_);
  const ValueId own_inputs = input_rows(graph, own_data, small_.input.columns);
  const auto op = [&](const char* name, ValueId a, ValueId b) { return graph.emit(name, {a, b}); };
  ValueId from_input = times(graph, input_rows(graph, data, dense_.input.columns), dense_.input);
  ValueId lack_of_input = op("Sub", from_input, times(graph, own_inputs, small_.input));
  if (layer_.shift != kNone) {
    const auto shift = [&](const std::vector<float>& numbers) {
      return constant(graph, {directions_, 1, small_.input.rows}, numbers);
    };
    std::vector<float> lack = dense_.shift.numbers;
    for (size_t i = 0; i < lack.size(); ++i) lack[i] -= small_.shift.numbers[i];
    from_input = op("Add", from_input, shift(dense_.shift.numbers));
    lack_of_input = op("Add", lack_of_input, shift(lack));
  }
  const ValueId from_state = times(graph, states, dense_.state);
  const ValueId lack_of_state = op("Sub", from_state, times(graph, own_states, small_.state));
  const auto first = [&](ValueId rows) { return sliced(graph, rows, 2, 0, together_); };
  const auto last = [&](ValueId rows) { return sliced(graph, rows, 2, together_, kEnd); };
  const int64_t inputs = small_.input.columns;
  const int64_t units = small_.state.columns;
  both_.ask(graph, joined(graph, {own_inputs, own_states}, 2), inputs + units,
            first(op("Add", lack_of_input, lack_of_state)),
            first(op("Add", from_input, from_state)), kind.held_out);
  if (apart_ > 0) {
    input_.ask(graph, own_inputs, inputs, last(lack_of_input), last(from_input), kind.held_out);
    if (fits_weights_) {
      state_.ask(graph, own_states, units, last(lack_of_state), last(from_state), kind.held_out);
    }
  }
  summing.part = std::make_unique<Part>(engine_, graph.finished());
  return *summing.part;
}

void RecurrentFit::add(const EngineValue& x, const EngineValues& dense, bool held_out) {
  Part& part = part_for({held_out, dense[0]->dims().size()}, x, dense);
  EngineValues inputs = {x};
  inputs.insert(inputs.end(), dense.begin(), dense.end());
  const TensorList results = on_host(part.run(inputs));
  size_t next = 0;
  both_.add(results, next, held_out);
  if (apart_ == 0) return;
  input_.add(results, next, held_out);
  if (fits_weights_) state_.add(results, next, held_out);
}

ValidatedFit RecurrentFit::finish(std::optional<double> ridge, const Together& together,
                                  const std::string& reason) {
  std::vector<SplitSums> systems;
  for (FitSums* sums : {&both_, &input_, &state_}) {
    for (const SplitSums& one : sums->sums(together)) systems.push_back(one);
  }
  ValidatedFit fit = validated_fit(systems, fits_weights_ ? ridge : std::optional(0.0));
  if (fit.helps()) change(fit.all, reason);
  return fit;
}

/// Changes the weights by the fits of `both_`, `input_` and `state_`, if they have sums.
void RecurrentFit::change(const std::vector<Eigen::MatrixXd>& maps, const std::string& reason) {
  const Eigen::MatrixXd* both = maps.data();
  const Eigen::MatrixXd* input = both + directions_;
  const Eigen::MatrixXd* state = input + directions_;
  const int64_t inputs = fits_weights_ ? small_.input.columns : 0;
  const int64_t states = fits_weights_ ? small_.state.columns : 0;
  const int64_t rows = small_.input.rows;
  const Graph& graph = small_network_.graph();
  /// Adds the columns of the maps from a column on to those of the weight.
  const auto add_to = [&](WeightId weight, int64_t columns, const Eigen::MatrixXd* alone,
                          int64_t column_of_both, int64_t column_alone) {
    const Weight& old = graph.weight(weight);
    std::vector<double> values = to_host(old).floats;
    const int64_t each = std::ssize(values) / directions_;
    for (int64_t d = 0; d < directions_; ++d) {
      for (int64_t o = 0; o < rows; ++o) {
        for (int64_t c = 0; c < columns; ++c) {
          values[d * each + o * columns + c] += o < together_
                                                    ? both[d](o, column_of_both + c)
                                                    : alone[d](o - together_, column_alone + c);
        }
      }
    }
    small_network_.assign_numbers(old, values, reason);
  };
  if (layer_.shift != kNone) add_to(layer_.shift, 1, input, inputs + states, inputs);
  if (!fits_weights_) return;
  add_to(layer_.weight, inputs, input, 0, 0);
  add_to(layer_.state, states, state, inputs, 0);
}

}  // namespace parsimony
