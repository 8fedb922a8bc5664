#include "parsimony/training/recovery/recurrence.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "parsimony/graph/attributes.h"
#include "parsimony/graph/operators/schema.h"
#include "parsimony/torch_io/tensor.h"

namespace parsimony::training {
namespace {

/// At these indices of an axis; all if there are none.
at::Tensor at_kept(const at::Tensor& x, int64_t axis, const std::vector<int64_t>& kept) {
  return kept.empty() || !x.defined() ? x : x.index_select(axis, at::tensor(kept, at::kLong));
}

bool is_batch_first(const Node& node) { return attr(node, "layout", 0) == 1; }

const Node& node_of(const Graph& graph, ValueId value) {
  return graph.nodes[producers_of(graph)[value]];
}

/// The operand with the state before the first step.
ValueId initial_of(const Node& node) {
  const auto i = static_cast<size_t>(schema_of(node).recurrence.initial);
  return i < node.inputs.size() ? node.inputs[i] : kNone;
}

}  // namespace

RecurrentFit::RecurrentFit(const Graph& dense, SmallNetwork& small, const FitLayer& layer,
                           bool weights)
    : dense_graph_(dense),
      small_network_(small),
      layer_(layer),
      weights_(weights),
      node_(node_of(dense, layer.answer)),
      small_(matrices(small.graph(), small.graph().node(layer.node))),
      kept_state_(kept_channels(small, layer)),
      both_(weights, layer.shift != kNone),
      input_(weights, layer.shift != kNone),
      state_(weights, false) {
  const std::string& name = small.graph().weight(layer.weight).name;
  const std::vector<int64_t> rows = small.kept(name, layer.out_axis);
  dense_ = matrices(dense, node_);
  for (at::Tensor* part : {&dense_.w, &dense_.r, &dense_.b}) *part = at_kept(*part, 1, rows);
  together_ = small_.w.size(1) - (schema_of(node_).recurrence.resets ? small_.r.size(2) : 0);
}

RecurrentFit::Matrices RecurrentFit::matrices(const Graph& graph, const Node& node) const {
  const auto operand = [&](size_t i) {
    const at::Tensor all = torch_io::to_tensor(graph.weight(graph.value(node.inputs[i]).weight));
    return all.to(at::kFloat);
  };
  Matrices result{operand(1), operand(2), {}};
  for (at::Tensor* matrix : {&result.w, &result.r}) {
    if (matrix->dim() == 2) *matrix = matrix->unsqueeze(0);
  }
  if (layer_.shift != kNone) {
    // That of the state may follow.
    const at::Tensor bias = operand(3).reshape({result.w.size(0), -1});
    result.b = bias.narrow(1, 0, result.w.size(1));
  }
  return result;
}

/// x [t n i] or [n t i] as [d, t·n, i].
at::Tensor RecurrentFit::input_rows(const at::Tensor& x) const {
  const at::Tensor steps = is_batch_first(node_) ? x.transpose(0, 1) : x;
  return steps.to(at::kFloat).reshape({1, -1, x.size(2)}).expand({small_.w.size(0), -1, -1});
}

/// y [t d n h], [n t d h] or [t n h] as what each step begins with, [d, t·n, h].
at::Tensor RecurrentFit::states_before(const at::Tensor& y, const at::Tensor& initial) const {
  const bool batch_first = is_batch_first(node_);
  at::Tensor after = y.dim() == 3 ? y.unsqueeze(1) : batch_first ? y.permute({1, 2, 0, 3}) : y;
  after = after.transpose(0, 1).to(at::kFloat);  // [d t n h]
  const at::Tensor first = !initial.defined()
                               ? at::zeros_like(after.select(1, 0))
                               : (batch_first ? initial.transpose(0, 1) : initial).to(at::kFloat);
  const std::string direction = attr(node_, "direction", "forward");
  std::vector<at::Tensor> before;
  for (int64_t d = 0; d < after.size(0); ++d) {
    const at::Tensor begin = first[d].unsqueeze(0);
    const int64_t others = after.size(1) - 1;
    const bool backward = direction == "reverse" || d == 1;
    before.push_back(backward ? at::cat({after[d].narrow(0, 1, others), begin})
                              : at::cat({begin, after[d].narrow(0, 0, others)}));
  }
  return at::stack(before).reshape({after.size(0), -1, after.size(3)});
}

void RecurrentFit::add(const at::Tensor& x, const std::vector<at::Tensor>& dense, bool held_out) {
  at::Tensor initial;
  if (dense.size() > 2) {
    initial = dense[2];
  } else if (const ValueId value = initial_of(node_); value != kNone) {
    initial = torch_io::to_tensor(dense_graph_.weight(dense_graph_.value(value).weight));
  }
  const at::Tensor states = states_before(dense[0], initial);
  const at::Tensor own_states = at_kept(states, 2, kept_state_);
  const at::Tensor own_inputs = input_rows(x);
  const auto product = [](const at::Tensor& rows, const at::Tensor& matrix) {
    return at::matmul(rows, matrix.transpose(1, 2));
  };
  at::Tensor from_input = product(input_rows(dense[1]), dense_.w);
  at::Tensor lack_of_input = from_input - product(own_inputs, small_.w);
  if (dense_.b.defined()) {
    from_input = from_input + dense_.b.unsqueeze(1);
    lack_of_input = lack_of_input + (dense_.b - small_.b).unsqueeze(1);
  }
  const at::Tensor from_state = product(states, dense_.r);
  const at::Tensor lack_of_state = from_state - product(own_states, small_.r);
  both_.add(at::cat({own_inputs, own_states}, 2),
            (lack_of_input + lack_of_state).narrow(2, 0, together_),
            (from_input + from_state).narrow(2, 0, together_), held_out);
  const int64_t apart = from_input.size(2) - together_;
  if (apart == 0) return;
  const auto last = [&](const at::Tensor& rows) { return rows.narrow(2, together_, apart); };
  input_.add(own_inputs, last(lack_of_input), last(from_input), held_out);
  if (weights_) state_.add(own_states, last(lack_of_state), last(from_state), held_out);
}

JudgedFit RecurrentFit::finish(std::optional<double> ridge, const RankGroup* ranks,
                               const std::string& reason) {
  std::vector<SplitSums> systems;
  for (FitSums* sums : {&both_, &input_, &state_}) {
    for (SplitSums& one : sums->sums(ranks)) systems.push_back(std::move(one));
  }
  JudgedFit fit = judged_fit(std::move(systems), weights_ ? ridge : std::optional(0.0));
  if (fit.helps()) change(fit.all, reason);
  return fit;
}

/// `maps` are those of `both_`, `input_` and `state_`, as far as there are such sums.
void RecurrentFit::change(const std::vector<Eigen::MatrixXd>& maps, const std::string& reason) {
  const int64_t directions = small_.w.size(0);
  const int64_t apart = small_.w.size(1) - together_;
  const int64_t i = weights_ ? small_.w.size(2) : 0;
  const int64_t h = weights_ ? small_.r.size(2) : 0;
  const int64_t shift = layer_.shift != kNone ? 1 : 0;
  auto next = maps.begin();
  const auto taken = [&](const FitSums& sums, int64_t out, int64_t in) {
    if (sums.empty()) return at::zeros({directions, out, in}, at::kDouble);
    const auto first = next;
    next += directions;
    return stacked(std::vector<Eigen::MatrixXd>(first, next));
  };
  const at::Tensor both = taken(both_, together_, i + h + shift);
  const at::Tensor input = taken(input_, apart, i + shift);
  const at::Tensor state = taken(state_, apart, h);
  const Graph& graph = small_network_.graph();
  if (shift != 0) {
    const Weight& old = graph.weight(layer_.shift);
    const at::Tensor values = in_double(old).clone().reshape({directions, -1});
    values.narrow(1, 0, small_.w.size(1))
        .add_(at::cat({both.select(2, i + h), input.select(2, i)}, 1));
    assign(small_network_, old, values.reshape(old.dims), reason);
  }
  if (!weights_) return;
  const auto add_to = [&](WeightId weight, const at::Tensor& more, const at::Tensor& alone) {
    const Weight& old = graph.weight(weight);
    assign(small_network_, old, in_double(old) + at::cat({more, alone}, 1).reshape(old.dims),
           reason);
  };
  add_to(layer_.weight, both.narrow(2, 0, i), input.narrow(2, 0, i));
  add_to(layer_.state, both.narrow(2, i, h), state);
}

}  // namespace parsimony::training
