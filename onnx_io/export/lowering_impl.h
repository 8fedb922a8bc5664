// The graph that an export builds, node by node, and one node of the source graph, to be lowered to
// ONNX opset 17.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "parsimony/graph/elements.h"
#include "parsimony/graph/graph_builder.h"
#include "parsimony/graph/operators/factor.h"
#include "parsimony/graph/operators/node_view.h"

namespace parsimony::onnx_io {

/// Builds the exported graph, whose values have an element type; nodes are named "fc", "fc/1", ….
class ExportBuilder : public GraphBuilder {
 public:
  ExportBuilder();

  /// Adds a tensor with this name, or another one if it is taken.
  ValueId tensor(const std::string& name, DType dtype, const Shape& dims,
                 std::vector<std::byte> bytes);

  std::vector<ValueId> emit_many(const std::string& op, std::vector<ValueId> inputs, size_t outputs,
                                 NodeAttributes attributes = {});
  ValueId emit(const std::string& op, std::vector<ValueId> inputs, NodeAttributes attributes = {}) {
    return emit_many(op, std::move(inputs), 1, std::move(attributes)).front();
  }
  /// Casts `value` to this type; a constant is converted.
  ValueId cast(ValueId value, DType dtype);

  DType dtype(ValueId value) const { return graph().value(value).dtype; }
  void set_dtype(ValueId value, DType dtype) { graph().value(value).dtype = dtype; }
  bool is_weight(ValueId value) const { return graph().value(value).weight != kNone; }
  const Weight& weight_of(ValueId value) const { return graph().weight_of(value); }
};

/// Conv(x, w, b) -> BatchNormalization(gamma, beta, mean, var) becomes Conv(x, w · s, (b - mean) ·
/// s + beta) with s = gamma / sqrt(var + epsilon), per output channel. Folds in float32, if the
/// convolution's result and weights have no other reader. The weight keeps its name; a new bias is
/// named after the normalisation's.
void fold_batchnorm(ExportBuilder& built);

/// Inputs and results of a lowering function.
struct Lowering {
  const NodeView& view;
  ExportBuilder& out;
  std::vector<ValueId> inputs;   ///< in the built graph; kNone if absent
  std::vector<bool> requested;   ///< per output: whether it is read
  std::vector<ValueId> results;  ///< to be filled, one per requested output
  bool open_batch = false;       ///< dimension 0 of tensors is dynamic
  bool keeps_weights = false;    ///< as in ExportOptions

  const Node& node() const { return view.node(); }
  ValueId in(size_t i) const { return i < inputs.size() ? inputs[i] : kNone; }
  DType dtype() const { return out.dtype(in(0)); }
  size_t rank(int i = 0) const { return shape(i).size(); }
  /// @throws UnsupportedError if it is unknown
  const Shape& shape(int i = 0) const;
  /// @throws UnsupportedError, naming the node
  void require(bool holds, std::string_view why) const;
  void set_result(ValueId value) { results.at(0) = value; }
  /// Returns a constant operand of the source.
  std::vector<int64_t> known_integers(int i) const;
};

using Lower = void (*)(Lowering&);

/// Returns null for an operator that needs no lowering, or is unknown.
Lower find_lowering(std::string_view domain, std::string_view op);

/// Type promotion: converts the operands of elementwise operators to one type, like torch.
void promote(Lowering& lowering);

// lower_layers.cc
void lower_gelu(Lowering& s);
void lower_mish(Lowering& s);
void lower_mod(Lowering& s);
void lower_logical(Lowering& s);
void lower_group_normalization(Lowering& s);
void lower_recurrent(Lowering& s);

// lower_pooling.cc
void lower_max_pool(Lowering& s);
void lower_average_pool(Lowering& s);
void lower_adaptive_average_pool(Lowering& s);
void lower_adaptive_max_pool(Lowering& s);

// lower_shape.cc
void lower_reduce(Lowering& s);
void lower_reduce_sum(Lowering& s);
void lower_resize(Lowering& s);
void lower_dft(Lowering& s);
void lower_filled(Lowering& s);

}  // namespace parsimony::onnx_io
