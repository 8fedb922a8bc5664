// Lstm(x[t n i], w_ih[(4 h) i], w_hh[(4 h) h], b_ih?, b_hh?, h0?, c0?) -> y[t n h], hn, cn of
// torch: gates in another order, and one tensor for both biases. Gru and Rnn likewise.
// @source LSTM, GRU and RNN of opset 14

#include "parsimony/onnx_io/export/lowering_impl.h"

namespace parsimony::onnx_io {
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

/// The rows of a weight, gate by gate.
Bytes reordered(const Lowering& s, size_t i, const std::vector<size_t>& order) {
  s.require(s.out.is_weight(s.in(i)), "its weights are computed");
  const Bytes bytes = dense_bytes(s.out.weight_of(s.in(i)));
  const size_t gate = bytes.size() / order.size();
  Bytes result;
  for (const size_t from : order) {
    const auto begin = bytes.begin() + static_cast<std::ptrdiff_t>(from * gate);
    result.insert(result.end(), begin, begin + static_cast<std::ptrdiff_t>(gate));
  }
  return result;
}

/// [1, …]: one direction.
ValueId matrix(Lowering& s, size_t i, const CellKind& kind, const std::string& name) {
  Shape dims = s.shape(static_cast<int>(i));
  dims.insert(dims.begin(), 1);
  return s.out.tensor(name, s.out.dtype(s.in(i)), dims, reordered(s, i, kind.order));
}

ValueId biases(Lowering& s, const CellKind& kind, const std::string& name) {
  if (s.in(3) == kNone) return kNone;
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
  Attributes attributes{{"hidden_size", hidden}};
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
  s.give(s.out.emit("Squeeze", {results[0], s.out.integers({1})}));
  for (size_t i = 1; i < outputs; ++i) s.results[i] = results[i];
}

}  // namespace parsimony::onnx_io
