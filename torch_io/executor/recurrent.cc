// LSTM, GRU and RNN, step by step, by the formulas of the ONNX specification. The layers of domain
// "torch" differ only in the order of their gates.
#include <algorithm>
#include <cctype>

#include "parsimony/torch_io/executor/operators_impl.h"

namespace parsimony::executor {

Activation activation_of(const Call& call, const std::string& name, std::optional<double> alpha,
                         std::optional<double> beta) {
  std::string lower = name;
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const auto a = [alpha](double fallback) { return alpha.value_or(fallback); };
  const auto b = [beta](double fallback) { return beta.value_or(fallback); };
  if (lower == "relu") return [](const at::Tensor& x) { return at::relu(x); };
  if (lower == "tanh") return [](const at::Tensor& x) { return at::tanh(x); };
  if (lower == "sigmoid") return [](const at::Tensor& x) { return at::sigmoid(x); };
  if (lower == "softsign") return [](const at::Tensor& x) { return x / (1 + at::abs(x)); };
  if (lower == "softplus") return [](const at::Tensor& x) { return at::softplus(x); };
  if (lower == "elu") return [s = a(1)](const at::Tensor& x) { return at::elu(x, s); };
  if (lower == "affine") {
    return [s = a(1), o = b(0)](const at::Tensor& x) { return x * s + o; };
  }
  if (lower == "leakyrelu") {
    return [s = a(0.01)](const at::Tensor& x) { return at::leaky_relu(x, s); };
  }
  if (lower == "thresholdedrelu") {
    return [s = a(1)](const at::Tensor& x) { return at::threshold(x, s, 0); };
  }
  if (lower == "scaledtanh") {
    return [s = a(1), t = b(1)](const at::Tensor& x) { return at::tanh(x * t) * s; };
  }
  if (lower == "hardsigmoid") {
    return [s = a(0.2), o = b(0.5)](const at::Tensor& x) { return at::clamp(x * s + o, 0, 1); };
  }
  call.unsupported("activation " + name + " is not supported");
}

namespace {

/// One direction of one layer; undefined where there is none.
struct Cell {
  at::Tensor w;  ///< [(G h) i]
  at::Tensor r;  ///< [(G h) h]
  at::Tensor wb;
  at::Tensor rb;
  at::Tensor p;  ///< [(3 h)]: input, output, forget
  at::Tensor m;  ///< [q h]: projects h to q numbers, the output and recurrent state; torch only
  std::vector<Activation> functions;
  double clip = 0;
  bool input_forget = false;
  bool linear_before_reset = false;
};

struct State {
  at::Tensor h;
  at::Tensor c;
};

at::Tensor clipped(const Cell& cell, const at::Tensor& x) {
  return cell.clip > 0 ? at::clamp(x, -cell.clip, cell.clip) : x;
}

at::Tensor linear(const at::Tensor& x, const at::Tensor& w, const at::Tensor& b) {
  const at::Tensor y = at::matmul(x, w.t());
  return b.defined() ? y + b : y;
}

State lstm_step(const Cell& cell, const at::Tensor& xw, const State& s) {
  const Tensors gate = at::chunk(xw + linear(s.h, cell.r, cell.rb), 4, -1);  // i o f c
  const Tensors peep = cell.p.defined() ? at::chunk(cell.p, 3) : Tensors{};
  const auto seen = [&](size_t g, const at::Tensor& c) {
    return clipped(cell, peep.empty() ? gate[g] : gate[g] + peep[g] * c);
  };
  const at::Tensor i = cell.functions[0](seen(0, s.c));
  const at::Tensor f = cell.input_forget ? 1 - i : cell.functions[0](seen(2, s.c));
  const at::Tensor c = f * s.c + i * cell.functions[1](clipped(cell, gate[3]));
  const at::Tensor h = cell.functions[0](seen(1, c)) * cell.functions[2](c);
  return {cell.m.defined() ? at::matmul(h, cell.m.t()) : h, c};
}

/// To 8 bits and back, with the scale that its numbers ask for.
at::Tensor rounded(const at::Tensor& x) {
  const at::Tensor low = at::clamp_max(at::min(x), 0);
  const at::Tensor scale = (at::clamp_min(at::max(x), 0) - low) / 255;
  const at::Tensor zero = at::round(-low / scale);
  const at::Tensor codes = at::clamp(at::round(x / scale) + zero, 0, 255);
  return at::where(scale > 0, (codes - zero) * scale, x);
}

State quantised_lstm_step(const Cell& cell, const at::Tensor& xw, const State& s) {
  return lstm_step(cell, xw, {rounded(s.h), s.c});
}

State gru_step(const Cell& cell, const at::Tensor& xw, const State& s) {
  const Tensors x = at::chunk(xw, 3, -1);  // z r h
  const Tensors r = at::chunk(cell.r, 3);
  const Tensors b = cell.rb.defined() ? at::chunk(cell.rb, 3) : Tensors(3);
  const at::Tensor z = cell.functions[0](clipped(cell, x[0] + linear(s.h, r[0], b[0])));
  const at::Tensor reset = cell.functions[0](clipped(cell, x[1] + linear(s.h, r[1], b[1])));
  const at::Tensor past =
      cell.linear_before_reset ? reset * linear(s.h, r[2], b[2]) : linear(reset * s.h, r[2], b[2]);
  return {(1 - z) * cell.functions[1](clipped(cell, x[2] + past)) + z * s.h, {}};
}

State rnn_step(const Cell& cell, const at::Tensor& xw, const State& s) {
  return {cell.functions[0](clipped(cell, xw + linear(s.h, cell.r, cell.rb))), {}};
}

using CellStep = State (*)(const Cell&, const at::Tensor&, const State&);

struct Sequence {
  at::Tensor y;  ///< [t n h]
  State last;
};

/// x [t n i]. Beyond a sequence's length the state is kept and y is zero; lengths may be undefined.
Sequence run(const Cell& cell, CellStep step, const at::Tensor& x, State state,
             const at::Tensor& lengths, bool reverse) {
  const int64_t steps = x.size(0);
  const at::Tensor xw = linear(x, cell.w, cell.wb);
  Tensors y(steps);
  for (int64_t k = 0; k < steps; ++k) {
    const int64_t t = reverse ? steps - 1 - k : k;
    State next = step(cell, xw[t], state);
    y[t] = next.h;
    if (lengths.defined()) {
      const at::Tensor inside = (lengths > t).unsqueeze(1);
      y[t] = at::where(inside, next.h, at::zeros_like(next.h));
      next.h = at::where(inside, next.h, state.h);
      if (next.c.defined()) next.c = at::where(inside, next.c, state.c);
    }
    state = std::move(next);
  }
  return {at::stack(y), state};
}

struct CellKind {
  CellStep step;
  int64_t gates;
  std::vector<std::string> activations;
};

Cell cell_of(const Call& call, const CellKind& kind, int64_t direction) {
  Cell cell;
  cell.w = call.in(1)[direction];
  cell.r = call.in(2)[direction];
  if (call.has_in(3)) {
    const Tensors halves = at::chunk(call.in(3)[direction], 2);
    cell.wb = halves[0];
    cell.rb = halves[1];
  }
  if (kind.gates == 4 && call.has_in(7)) cell.p = call.in(7)[direction];
  const std::vector<std::string> names = call.texts("activations");
  const std::vector<double> alphas = call.reals("activation_alpha");
  const std::vector<double> betas = call.reals("activation_beta");
  const size_t count = kind.activations.size();
  for (size_t i = 0; i < count; ++i) {
    const size_t at = direction * count + i;
    const auto from = [at](const std::vector<double>& v) {
      return at < v.size() ? std::optional(v[at]) : std::nullopt;
    };
    const bool named = at < names.size();
    cell.functions.push_back(
        activation_of(call, named ? names[at] : kind.activations[i], from(alphas), from(betas)));
  }
  cell.clip = call.real("clip", 0);
  cell.input_forget = call.integer("input_forget", 0) != 0;
  cell.linear_before_reset = call.integer("linear_before_reset", 0) != 0;
  return cell;
}

Tensors layers(const Call& call, const CellKind& kind) {
  const bool batch_first = call.integer("layout", 0) == 1;
  const at::Tensor x = batch_first ? call.in(0).transpose(0, 1) : call.in(0);
  const int64_t directions = call.in(1).size(0);
  const int64_t hidden = call.in(2).size(2);
  const std::string direction = call.text("direction", "forward");
  const at::Tensor lengths = call.has_in(4) ? call.in(4).to(at::kLong) : at::Tensor();
  Tensors y(directions);
  Tensors h(directions);
  Tensors c(directions);
  for (int64_t d = 0; d < directions; ++d) {
    const auto initial = [&](size_t operand) {
      if (!call.has_in(operand)) return at::zeros({x.size(1), hidden}, x.options());
      return call.in(operand).select(batch_first ? 1 : 0, d);
    };
    State state{initial(5), kind.gates == 4 ? initial(6) : at::Tensor()};
    const bool reverse = direction == "reverse" || d == 1;
    const Sequence sequence = run(cell_of(call, kind, d), kind.step, x, state, lengths, reverse);
    y[d] = sequence.y;
    h[d] = sequence.last.h;
    c[d] = sequence.last.c;
  }
  const at::Tensor all = at::stack(y, 1);  // t d n h
  Tensors results{batch_first ? all.permute({2, 0, 1, 3}) : all, at::stack(h, batch_first ? 1 : 0)};
  if (kind.gates == 4) results.push_back(at::stack(c, batch_first ? 1 : 0));
  return results;
}

at::Tensor reordered(const at::Tensor& rows, const Ints& order) {
  if (!rows.defined()) return rows;
  const Tensors gates = at::chunk(rows, index(order.size()));
  Tensors picked;
  for (const int64_t i : order) picked.push_back(gates[i]);
  return at::cat(picked);
}

/// One layer, one direction: x w_ih w_hh b_ih? b_hh? h0? c0? w_hr?; gates in torch's order.
Tensors torch_layer(const Call& call, const CellKind& kind, const Ints& order) {
  const at::Tensor& x = call.in(0);
  Cell cell;
  cell.w = reordered(call.in(1), order);
  cell.r = reordered(call.in(2), order);
  cell.wb = reordered(call.in(3), order);
  cell.rb = reordered(call.in(4), order);
  cell.linear_before_reset = true;
  if (call.has_in(7)) cell.m = call.in(7);
  for (const std::string& name : kind.activations) {
    cell.functions.push_back(activation_of(call, name, {}, {}));
  }
  const auto initial = [&](size_t operand, int64_t width) {
    if (!call.has_in(operand)) return at::zeros({x.size(1), width}, x.options());
    return call.in(operand)[0];
  };
  State state{initial(5, cell.r.size(1)),
              kind.gates == 4 ? initial(6, cell.r.size(0) / 4) : at::Tensor()};
  const bool reverse = call.integer("reverse", 0) != 0;
  const Sequence sequence = run(cell, kind.step, x, state, {}, reverse);
  Tensors results{sequence.y, sequence.last.h.unsqueeze(0)};
  if (kind.gates == 4) results.push_back(sequence.last.c.unsqueeze(0));
  return results;
}

}  // namespace

Tensors lstm(const Call& call) { return layers(call, {lstm_step, 4, {"Sigmoid", "Tanh", "Tanh"}}); }
/// Matrices are stored by columns; the data of each product are rounded when it is computed.
/// @source onnxruntime, ContribOperators.md: DynamicQuantizeLSTM
Tensors dynamic_quantize_lstm(const Call& call) {
  const auto real = [&](size_t matrix, size_t scale, size_t zero) {
    const auto per_gate = [&](size_t i) {
      const at::Tensor x = call.in(i).to(call.in(0).scalar_type());
      return x.dim() == 1 ? x.reshape({-1, 1, 1}) : x.unsqueeze(1);
    };
    const at::Tensor codes = call.in(matrix).to(call.in(0).scalar_type());
    return ((codes - per_gate(zero)) * per_gate(scale)).transpose(1, 2);
  };
  Tensors inputs{rounded(call.in(0)), real(1, 8, 9), real(2, 10, 11)};
  for (size_t i = 3; i < 8; ++i) inputs.push_back(call.in(i));
  return layers(call.on(std::move(inputs)), {quantised_lstm_step, 4, {"Sigmoid", "Tanh", "Tanh"}});
}
Tensors gru(const Call& call) { return layers(call, {gru_step, 3, {"Sigmoid", "Tanh"}}); }
Tensors rnn(const Call& call) { return layers(call, {rnn_step, 1, {"Tanh"}}); }

Tensors torch_lstm(const Call& call) {
  return torch_layer(call, {lstm_step, 4, {"Sigmoid", "Tanh", "Tanh"}}, {0, 3, 1, 2});
}
Tensors torch_gru(const Call& call) {
  return torch_layer(call, {gru_step, 3, {"Sigmoid", "Tanh"}}, {1, 0, 2});
}
Tensors torch_rnn(const Call& call) {
  return torch_layer(call, {rnn_step, 1, {call.text("nonlinearity", "tanh")}}, {0});
}

}  // namespace parsimony::executor
