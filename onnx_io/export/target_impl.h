// The graph that an export builds, node by node.
#pragma once

#include <deque>
#include <initializer_list>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "parsimony/graph/elements.h"
#include "parsimony/graph/graph.h"
#include "parsimony/graph/operators/factor.h"
#include "parsimony/onnx_io/export/export.h"

namespace parsimony::onnx_io {

using Attributes = std::vector<std::pair<std::string, Attribute>>;

/// Values have an element type from the start.
class Target {
 public:
  Target();

  /// Later nodes are named after this one: "fc", "fc/1", ….
  void begin(const std::string& name);

  ValueId input(const Value& source, const Shape& dims, const std::vector<std::string>& symbols);
  /// A view of a tensor of the source graph, under its name.
  ValueId weight(const Weight& weight, const std::string& name);
  /// A new tensor that owns its bytes.
  ValueId tensor(const std::string& name, DType dtype, const Shape& dims,
                 std::vector<std::byte> bytes);
  ValueId constant(const HostTensor& tensor);
  ValueId integers(std::vector<int64_t> values) {
    return constant(HostTensor::vector(std::move(values)));
  }
  /// Of rank 0.
  ValueId number(double value, DType dtype);

  std::vector<ValueId> emit_many(const std::string& op, const std::vector<ValueId>& inputs,
                                 size_t outputs, Attributes attributes = {});
  ValueId emit(const std::string& op, const std::vector<ValueId>& inputs,
               Attributes attributes = {}) {
    return emit_many(op, inputs, 1, std::move(attributes)).front();
  }
  /// `value` as elements of this type; a constant becomes another one.
  ValueId cast(ValueId value, DType dtype);

  /// Gives the value the name that it has in the source.
  void rename(ValueId value, const std::string& name);

  DType dtype(ValueId value) const { return graph_.value(value).dtype; }
  void set_dtype(ValueId value, DType dtype) { graph_.value(value).dtype = dtype; }
  bool is_weight(ValueId value) const { return graph_.value(value).weight != kNone; }
  const Weight& weight_of(ValueId value) const { return graph_.weight(graph_.value(value).weight); }
  Graph& graph() { return graph_; }

 private:
  ValueId add_value(const std::string& name);
  std::string fresh();

  Graph graph_;
  std::string base_ = "value";
  std::unordered_map<std::string, int> counters_;
  std::unordered_map<std::string, ValueId> names_;
  std::deque<std::vector<std::byte>> storage_;
};

/// Conv(x, w, b) -> BatchNormalization(gamma, beta, mean, var) becomes Conv(x, w · s, (b - mean) ·
/// s + beta) with s = gamma / sqrt(var + epsilon), per output channel. Folds in float32, if the
/// convolution's result and weights have no other reader. The weight keeps its name; a new bias is
/// named after the normalisation's.
void fold_batchnorm(Target& target);

}  // namespace parsimony::onnx_io
