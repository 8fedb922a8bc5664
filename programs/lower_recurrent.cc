// Recurrent layers: one node of domain "torch" per layer and direction.
//
//   Lstm(x[t n i], w_ih[(4 h) i], w_hh[(4 h) h], b_ih?, b_hh?, h0[1 n h], c0[1 n h])
//     -> y[t n h], hn[1 n h], cn[1 n h]
//
// An Lstm with projection has w_hr[p h] as its last operand; then h0, y and hn have size p.
#include <algorithm>

#include "parsimony/programs/call.h"

namespace parsimony::programs {
namespace {

constexpr int64_t kTime = 0;
constexpr int64_t kUnits = 2;

struct Stack {
  std::string op = {};            // "Lstm"
  std::string nonlinearity = {};  // of "Rnn"
  std::vector<Operand> parameters = {};
  std::vector<ValueId> states = {};  // h0 and, of an LSTM, c0: [layers directions, n, h]
  std::vector<ValueId> zeros = {};   // states that are zero
  size_t state_count = 0;
  bool biases = true;
  bool projects = false;
  int64_t layers = 1;
  int64_t directions = 1;
  bool batch_first = false;
};

/// Returns the number of parameters of one layer in one direction.
int64_t parameters_of(const Stack& stack) {
  return (stack.biases ? 4 : 2) + (stack.projects ? 1 : 0);
}

struct Step {
  ValueId y;
  std::vector<ValueId> states;
};

bool is_zeros(const Call& call, const Operand& state) {
  const Node* node = call.out.producer(state.value);
  if (node == nullptr || node->op != "ConstantOfShape") return false;
  const auto* filling = std::get_if<std::vector<double>>(&node->attributes.at(0).second);
  return filling != nullptr && *filling == std::vector<double>{0};
}

/// Reads the states. Initial zeros are not operands: removed channels are zero in them anyway.
void take_states(Call& call, Stack& stack, const std::vector<Operand>& states) {
  stack.state_count = states.size();
  const bool zeros = std::all_of(states.begin(), states.end(),
                                 [&](const Operand& state) { return is_zeros(call, state); });
  for (const Operand& state : states) {
    (zeros ? stack.zeros : stack.states).push_back(state.value);
  }
}

ValueId joined(Call& call, const std::vector<ValueId>& parts, int64_t axis) {
  if (parts.size() == 1) return parts.front();
  std::vector<Operand> operands;
  for (const ValueId part : parts) operands.push_back({part});
  return call.out.emit("Concat", operands, {{"axis", axis}});
}

/// Returns state number `i` of all: [1, n, h].
ValueId state_at(Call& call, ValueId states, int64_t i, int64_t count) {
  if (count == 1) return states;
  const ValueId start = call.out.integers({i});
  const ValueId end = call.out.integers({i + 1});
  return call.out.slice({states}, 0, start, end);
}

/// Ties the widths of all layers and of their initial states, even if the last ones are unread.
void tie_widths(Call& call, ValueId states, std::vector<ValueId> zeros) {
  zeros.insert(zeros.begin(), states);
  call.out.keep(joined(call, zeros, 0));
}

/// Ties widths for an LSTM with projection, whose two states have separate widths.
void tie_projected(Call& call, const std::vector<ValueId>& states,
                   const std::vector<ValueId>& zeros) {
  for (size_t s = 0; s < states.size(); ++s) {
    tie_widths(call, states[s], zeros.empty() ? zeros : std::vector{zeros[s]});
  }
}

/// Emits one layer in one direction; `first` is its first parameter.
Step step(Call& call, const Stack& stack, ValueId x, int64_t i, bool reverse) {
  const size_t plain = stack.biases ? 4 : 2;
  const size_t each = parameters_of(stack);
  const size_t first = i * each;
  call.require(stack.parameters.size() >= first + each);
  std::vector<Operand> inputs{{x}};
  for (size_t p = 0; p < 4; ++p) {
    inputs.push_back(p < plain ? stack.parameters[first + p] : Operand{});
  }
  for (const ValueId states : stack.states) {
    inputs.push_back({state_at(call, states, i, stack.layers * stack.directions)});
  }
  if (stack.projects) {
    inputs.resize(7);
    inputs.push_back(stack.parameters[first + plain]);
  }
  Attributes attributes{{"reverse", int64_t{reverse ? 1 : 0}}};
  if (stack.op == "Rnn") attributes.with("nonlinearity", stack.nonlinearity);
  std::vector<ValueId> results =
      call.out.emit_many(stack.op, inputs, 1 + stack.state_count, std::move(attributes), "torch");
  return {results.front(), {results.begin() + 1, results.end()}};
}

void stacked(Call& call, const Stack& stack, ValueId x) {
  call.require(static_cast<int64_t>(stack.parameters.size()) ==
               parameters_of(stack) * stack.layers * stack.directions);
  if (stack.batch_first) x = permuted(call, x, {1, 0, 2});
  std::vector<std::vector<ValueId>> last(stack.state_count);
  for (int64_t layer = 0; layer < stack.layers; ++layer) {
    std::vector<ValueId> ways;
    for (int64_t way = 0; way < stack.directions; ++way) {
      const Step done = step(call, stack, x, layer * stack.directions + way, way == 1);
      ways.push_back(done.y);
      for (size_t s = 0; s < last.size(); ++s) last[s].push_back(done.states[s]);
    }
    x = joined(call, ways, kUnits);
  }
  if (stack.batch_first) x = permuted(call, x, {1, 0, 2});
  call.set_result(x);
  std::vector<ValueId> states;
  for (size_t s = 0; s < last.size(); ++s) {
    states.push_back(joined(call, last[s], 0));
    call.set_result(s + 1, Binding::tensor(states.back()));
  }
  if (stack.projects) {
    tie_projected(call, states, stack.zeros);
  } else {
    tie_widths(call, states.front(), stack.zeros);
  }
}

/// Reads the operator's name and its states, operand 1.
Stack begun(Call& call) {
  Stack stack{.op = call.onnx, .nonlinearity = call.op.starts_with("rnn_relu") ? "relu" : "tanh"};
  const bool lstm = stack.op == "Lstm";
  take_states(call, stack, lstm ? call.tensors(1) : std::vector<Operand>{call.tensor(1)});
  return stack;
}

}  // namespace

/// lstm(x, states, parameters, biases, layers, dropout, train, bidirectional, batch_first), gru(x,
/// state, …), rnn_tanh(x, state, …)
void lower_recurrent(Call& call) {
  call.require(call.arg(2).is(BindingKind::kList));  // else sequences of different lengths
  Stack stack = begun(call);
  call.require(stack.op != "Lstm" || stack.state_count == 2);
  const Operand x = call.tensor(0);
  call.require(call.size() == 9 && call.rank(x.value) == 3);
  stack.parameters = call.tensors(2);
  stack.biases = call.flag(3);
  stack.layers = call.integer(4);
  stack.directions = call.flag(7) ? 2 : 1;
  stack.batch_first = call.flag(8);
  const int64_t runs = stack.layers * stack.directions;
  stack.projects = stack.op == "Lstm" &&
                   static_cast<int64_t>(stack.parameters.size()) > parameters_of(stack) * runs;
  stacked(call, stack, x.value);
}

/// lstm_cell(x, states, w_ih, w_hh, b_ih, b_hh), gru_cell(x, state, …), rnn_tanh_cell(x, state, …):
/// a sequence of one step
void lower_cell(Call& call) {
  Stack stack = begun(call);
  stack.biases = !call.none(4);
  const auto leading = [&](ValueId value) {
    call.require(call.rank(value) == 2);
    return call.out.emit("Unsqueeze", {{value}, {call.out.integers({kTime})}});
  };
  const auto without = [&](ValueId value) {
    return call.out.emit("Squeeze", {{value}, {call.out.integers({kTime})}});
  };
  for (ValueId& state : stack.states) state = leading(state);
  for (ValueId& zero : stack.zeros) zero = leading(zero);
  for (size_t i = 2; i < (stack.biases ? 6 : 4); ++i) stack.parameters.push_back(call.tensor(i));
  const Step done = step(call, stack, leading(call.tensor(0).value), 0, false);
  tie_widths(call, done.states.front(), stack.zeros);
  for (size_t s = 0; s < done.states.size(); ++s) {
    call.set_result(s, Binding::tensor(without(done.states[s])));
  }
}

}  // namespace parsimony::programs
