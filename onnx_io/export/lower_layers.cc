// Elementwise operators, normalisations and recurrent layers that are missing or different in
// opset 17.
#include <cmath>

#include "parsimony/onnx_io/export/lowering_impl.h"

namespace parsimony::onnx_io {
namespace {

/// Returns tanh(sqrt(2/π) (x + 0.044715 x³)).
ValueId tanh_of_cubic(Lowering& s, ValueId x) {
  const auto number = [&](double value) { return s.out.number(value, s.dtype()); };
  const ValueId square = s.out.emit("Mul", {x, x});
  const ValueId cube = s.out.emit("Mul", {square, x});
  const ValueId scaled = s.out.emit("Mul", {cube, number(0.044715)});
  const ValueId sum = s.out.emit("Add", {x, scaled});
  return s.out.emit("Tanh", {s.out.emit("Mul", {sum, number(std::sqrt(2 / std::acos(-1.0)))})});
}

}  // namespace

/// x (1 + erf(x / sqrt 2)) / 2, or by tanh. @source Gelu of opset 20
void lower_gelu(Lowering& s) {
  const ValueId x = s.in(0);
  const auto number = [&](double value) { return s.out.number(value, s.dtype()); };
  const ValueId curve = s.view.attr("approximate", "none") == "tanh"
                            ? tanh_of_cubic(s, x)
                            : s.out.emit("Erf", {s.out.emit("Div", {x, number(std::sqrt(2.0))})});
  const ValueId gate = s.out.emit("Add", {curve, number(1)});
  s.set_result(s.out.emit("Mul", {s.out.emit("Mul", {x, gate}), number(0.5)}));
}

/// x tanh(softplus(x)). @source Mish of opset 18
void lower_mish(Lowering& s) {
  const ValueId gate = s.out.emit("Tanh", {s.out.emit("Softplus", {s.in(0)})});
  s.set_result(s.out.emit("Mul", {s.in(0), gate}));
}

/// ONNX's Mod of floats has the dividend's sign; torch's remainder has the divisor's.
void lower_mod(Lowering& s) {
  const bool fmod = s.view.attr("fmod", 0) != 0;
  if (fmod || !is_floating(s.dtype())) {
    s.set_result(s.out.emit("Mod", {s.in(0), s.in(1)}, {{"fmod", int64_t{fmod ? 1 : 0}}}));
    return;
  }
  const ValueId whole = s.out.emit("Floor", {s.out.emit("Div", {s.in(0), s.in(1)})});
  s.set_result(s.out.emit("Sub", {s.in(0), s.out.emit("Mul", {whole, s.in(1)})}));
}

/// And, Or, Xor, Not: ONNX supports only booleans; torch is bitwise for integers.
void lower_logical(Lowering& s) {
  for (const ValueId input : s.inputs) {
    s.require(s.out.dtype(input) == DType::kBool, "ONNX supports only booleans");
  }
  s.set_result(s.out.emit(s.node().op, s.inputs));
}

// GroupNormalization(x[n (g c) ..s], gamma[(g c)], beta[(g c)]):
//   [n g (c ..s)] -> InstanceNormalization -> [n (g c) ..s] · gamma + beta
// @source GroupNormalization of opset 18

namespace {

ValueId filled(Lowering& s, int64_t count, double number) {
  HostTensor tensor{.dtype = s.dtype(), .dims = {count}, .ints = {}, .floats = {}};
  tensor.floats.assign(count, number);
  return s.out.constant(tensor);
}

/// Reshapes [c] to [c 1 ..1], aligned with dimension 1 of x.
ValueId column(Lowering& s, ValueId vector) {
  std::vector<int64_t> axes;
  for (size_t d = 1; d + 1 < s.rank(); ++d) axes.push_back(static_cast<int64_t>(d));
  return axes.empty() ? vector : s.out.emit("Unsqueeze", {vector, s.out.integers(axes)});
}

}  // namespace

void lower_group_normalization(Lowering& s) {
  const int64_t groups = s.view.attr("num_groups", 0);
  s.require(groups > 0, "it has no groups");
  Shape back = s.shape();
  back[0] = 0;  // keeps the size
  const ValueId apart = s.out.emit("Reshape", {s.in(0), s.out.integers({0, groups, -1})});
  const ValueId normal =
      s.out.emit("InstanceNormalization", {apart, filled(s, groups, 1), filled(s, groups, 0)},
                 {{"epsilon", std::get<double>(*s.view.find("epsilon"))}});
  const ValueId together = s.out.emit("Reshape", {normal, s.out.integers(back)});
  const ValueId scaled = s.out.emit("Mul", {together, column(s, s.in(1))});
  s.set_result(s.out.emit("Add", {scaled, column(s, s.in(2))}));
}

// Lstm(x[t n i], w_ih[(4 h) i], w_hh[(4 h) h], b_ih?, b_hh?, h0?, c0?) -> y[t n h], hn, cn of
// torch: gates in another order, and one tensor for both biases. Gru and Rnn likewise.
// @source LSTM, GRU and RNN of opset 14

namespace {

using Bytes = std::vector<std::byte>;

struct CellKind {
  std::string_view op;
  std::string_view onnx;
  std::vector<size_t> order;  ///< torch's gates in the order of ONNX
};

CellKind kind_of(std::string_view op) {
  if (op == "Lstm") return {"Lstm", "LSTM", {0, 3, 1, 2}};  // i f g o -> i o f c
  if (op == "Gru") return {"Gru", "GRU", {1, 0, 2}};        // r z n -> z r h
  return {"Rnn", "RNN", {0}};
}

/// Reorders the rows of a weight, gate by gate.
Bytes reordered(const Lowering& s, size_t i, const std::vector<size_t>& order) {
  s.require(s.out.is_weight(s.in(i)), "its weights are not constant");
  const Bytes bytes = dense_bytes(s.out.weight_of(s.in(i)));
  const size_t gate = bytes.size() / order.size();
  Bytes result;
  for (const size_t from : order) {
    const auto begin = bytes.begin() + static_cast<std::ptrdiff_t>(from * gate);
    result.insert(result.end(), begin, begin + static_cast<std::ptrdiff_t>(gate));
  }
  return result;
}

/// The same, computed when the model runs.
ValueId reordering(Lowering& s, size_t i, const std::vector<size_t>& order) {
  if (order.size() == 1) return s.in(i);
  const auto gates = s.out.emit_many("Split", {s.in(i)}, order.size(), {{"axis", int64_t{0}}});
  std::vector<ValueId> result;
  for (const size_t from : order) result.push_back(gates[from]);
  return s.out.emit("Concat", result, {{"axis", int64_t{0}}});
}

/// [1, …]: one direction.
ValueId matrix(Lowering& s, size_t i, const CellKind& kind, const std::string& name) {
  if (s.keeps_weights) {
    return s.out.emit("Unsqueeze", {reordering(s, i, kind.order), s.out.integers({0})});
  }
  Shape dims = s.shape(static_cast<int>(i));
  dims.insert(dims.begin(), 1);
  return s.out.tensor(name, s.out.dtype(s.in(i)), dims, reordered(s, i, kind.order));
}

ValueId biases(Lowering& s, const CellKind& kind, const std::string& name) {
  if (s.in(3) == kNone) return kNone;
  if (s.keeps_weights) {
    const ValueId both =
        s.out.emit("Concat", {reordering(s, 3, kind.order), reordering(s, 4, kind.order)},
                   {{"axis", int64_t{0}}});
    return s.out.emit("Unsqueeze", {both, s.out.integers({0})});
  }
  Bytes both = reordered(s, 3, kind.order);
  const Bytes second = reordered(s, 4, kind.order);
  both.insert(both.end(), second.begin(), second.end());
  const int64_t rows = s.shape(3)[0];
  return s.out.tensor(name, s.out.dtype(s.in(3)), {1, 2 * rows}, std::move(both));
}

}  // namespace

void lower_recurrent(Lowering& s) {
  const CellKind kind = kind_of(s.node().op);
  s.require(s.node().inputs.size() < 8, "ONNX's LSTM has no projection (proj_size)");
  const std::string name = s.node().name;
  const int64_t hidden = s.shape(2)[1];
  NodeAttributes attributes{{"hidden_size", hidden}};
  if (s.view.attr("reverse", 0) != 0) attributes.emplace_back("direction", std::string("reverse"));
  if (kind.op == "Gru") attributes.emplace_back("linear_before_reset", int64_t{1});
  if (kind.op == "Rnn") {
    const bool relu = s.view.attr("nonlinearity", "tanh") == "relu";
    attributes.emplace_back("activations", std::vector<std::string>{relu ? "Relu" : "Tanh"});
  }
  const std::vector<ValueId> inputs{s.in(0),
                                    matrix(s, 1, kind, name + ".W"),
                                    matrix(s, 2, kind, name + ".R"),
                                    biases(s, kind, name + ".B"),
                                    kNone,
                                    s.in(5),
                                    s.in(6)};
  const size_t outputs = s.node().outputs.size();
  const auto results = s.out.emit_many(std::string(kind.onnx), inputs, outputs, attributes);
  s.set_result(s.out.emit("Squeeze", {results[0], s.out.integers({1})}));
  for (size_t i = 1; i < outputs; ++i) s.results[i] = results[i];
}

}  // namespace parsimony::onnx_io
