// One node of the source graph, to be lowered to ONNX opset 17.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "parsimony/graph/operators/factor.h"
#include "parsimony/graph/operators/node_view.h"
#include "parsimony/onnx_io/export/export_builder_impl.h"

namespace parsimony::onnx_io {

/// Inputs and results of a lowering function.
struct Lowering {
  const NodeView& view;
  ExportBuilder& out;
  std::vector<ValueId> inputs;   ///< in the graph that is built; kNone where absent
  std::vector<bool> wanted;      ///< which outputs are read
  std::vector<ValueId> results;  ///< to be filled, one per output that is wanted
  bool open_batch = false;       ///< dimension 0 of tensors is dynamic

  const Node& node() const { return view.node(); }
  ValueId in(size_t i) const { return i < inputs.size() ? inputs[i] : kNone; }
  DType dtype() const { return out.dtype(in(0)); }
  size_t rank(int i = 0) const { return shape(i).size(); }
  /// @throws UnsupportedError if it is not known
  const Shape& shape(int i = 0) const;
  /// @throws UnsupportedError, naming the node
  void require(bool holds, std::string_view why) const;
  void give(ValueId value) { results.at(0) = value; }
  /// A constant operand of the source.
  std::vector<int64_t> known_integers(int i) const;
};

using Lower = void (*)(Lowering&);

/// Null for an operator that needs no lowering, or is unknown.
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
void lower_filled(Lowering& s);

}  // namespace parsimony::onnx_io
