// Builds a graph node by node, in topological order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "parsimony/base/types.h"
#include "parsimony/graph/graph.h"

namespace parsimony {

/// Elements of the tensors that a builder made.
using TensorMemory = std::deque<std::vector<std::byte>>;

using NodeAttributes = std::vector<std::pair<std::string, Attribute>>;

/// Every value has a name of its own, and the element type that the operator table tells. Producers
/// and uses are filled by `finished`.
class GraphBuilder {
 public:
  /// Owns its graph, and the elements of the tensors that it makes.
  /// @param opset  of ai.onnx; in other domains it is 1
  explicit GraphBuilder(int opset, char separator = '_')
      : GraphBuilder(own_graph_, own_memory_, opset, separator) {}
  /// Adds to `graph`, which may be used after the builder as long as `memory` exists.
  GraphBuilder(Graph& graph, TensorMemory& memory, int opset, char separator = '_')
      : graph_(graph), memory_(memory), opset_(opset), separator_(separator) {}
  GraphBuilder(const GraphBuilder&) = delete;
  GraphBuilder& operator=(const GraphBuilder&) = delete;

  /// Later values are named after this: "base_0", "base_1", …. @returns what they were named after
  std::string begin(std::string base) { return std::exchange(base_, std::move(base)); }
  std::string unused_name();
  bool is_taken(const std::string& name) const { return names_.contains(name); }
  void reserve(const std::string& name) { names_.emplace(name, kNone); }
  void release(const std::string& name) { names_.erase(name); }
  /// Whoever has the name gets another one.
  void rename(ValueId value, const std::string& name);

  ValueId value(const std::string& name, DType dtype = DType::kUnknown);
  ValueId input(const std::string& name, DType dtype, std::optional<Shape> declared = {},
                std::vector<std::string> symbols = {});
  /// Adds a weight whose elements exist elsewhere.
  ValueId weight(Weight weight);
  ValueId tensor(const std::string& name, DType dtype, Shape dims, std::vector<std::byte> bytes);
  ValueId constant(const HostTensor& tensor);
  ValueId integers(std::vector<int64_t> values) {
    return constant(HostTensor::vector(std::move(values)));
  }
  /// Adds a constant of rank 0.
  ValueId number(double value, DType dtype) { return constant(HostTensor::of(value, dtype)); }

  /// A node that is named like its first result. @param name  of that; empty: an unused one
  std::vector<ValueId> emit_many(const std::string& op, std::vector<ValueId> inputs, size_t outputs,
                                 NodeAttributes attributes = {}, const std::string& domain = "",
                                 const std::string& name = "");
  ValueId emit(const std::string& op, std::vector<ValueId> inputs, NodeAttributes attributes = {}) {
    return emit_many(op, std::move(inputs), 1, std::move(attributes)).front();
  }
  void output(ValueId value) { graph_.outputs.push_back(value); }

  /// With producers and uses. Call it last.
  const Graph& finished() {
    finish(graph_);
    return graph_;
  }
  Graph& graph() { return graph_; }
  const Graph& graph() const { return graph_; }

 private:
  Graph own_graph_;  // unused if another one is built
  TensorMemory own_memory_;
  Graph& graph_;
  TensorMemory& memory_;
  int opset_;
  char separator_;
  std::string base_ = "value";
  std::unordered_map<std::string, int> counters_;
  std::unordered_map<std::string, ValueId> names_;  ///< kNone: reserved
};

/// Copies the constants whose elements shape inference reads into `memory`, which must outlive the
/// graph.
void own_literals(Graph& graph, TensorMemory& memory);

}  // namespace parsimony
