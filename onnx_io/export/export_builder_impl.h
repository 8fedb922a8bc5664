// The graph that an export builds, node by node.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "parsimony/graph/elements.h"
#include "parsimony/graph/graph_builder.h"

namespace parsimony::onnx_io {

/// Nodes of ONNX as it is exported, whose values have an element type from the start: "fc", "fc/1",
/// ….
class ExportBuilder : public GraphBuilder {
 public:
  ExportBuilder();

  /// A tensor of this name, or of another one if that is taken.
  ValueId tensor(const std::string& name, DType dtype, const Shape& dims,
                 std::vector<std::byte> bytes);

  std::vector<ValueId> emit_many(const std::string& op, std::vector<ValueId> inputs, size_t outputs,
                                 NodeAttributes attributes = {});
  ValueId emit(const std::string& op, std::vector<ValueId> inputs, NodeAttributes attributes = {}) {
    return emit_many(op, std::move(inputs), 1, std::move(attributes)).front();
  }
  /// `value` as elements of this type; a constant becomes another one.
  ValueId cast(ValueId value, DType dtype);

  DType dtype(ValueId value) const { return graph().value(value).dtype; }
  void set_dtype(ValueId value, DType dtype) { graph().value(value).dtype = dtype; }
  bool is_weight(ValueId value) const { return graph().value(value).weight != kNone; }
  const Weight& weight_of(ValueId value) const {
    return graph().weight(graph().value(value).weight);
  }
};

/// Conv(x, w, b) -> BatchNormalization(gamma, beta, mean, var) becomes Conv(x, w · s, (b - mean) ·
/// s + beta) with s = gamma / sqrt(var + epsilon), per output channel. Folds in float32, if the
/// convolution's result and weights have no other reader. The weight keeps its name; a new bias is
/// named after the normalisation's.
void fold_batchnorm(ExportBuilder& built);

}  // namespace parsimony::onnx_io
