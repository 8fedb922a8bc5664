// Finds tensors and nodes of a model by name, and knows who reads what.
#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>
#include <onnx/onnx_pb.h>

#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "parsimony/graph/types.h"

namespace parsimony::onnx_io {

/// A tensor that the model holds. Exactly one of `tensor` and `attribute` is set; the attribute is
/// value_int, value_ints, value_float or value_floats of a Constant node.
struct Constant {
  onnx::TensorProto* tensor = nullptr;
  onnx::AttributeProto* attribute = nullptr;
  bool is_initializer = false;
};

class ModelIndex {
 public:
  explicit ModelIndex(onnx::ModelProto& model);

  /// @throws ModelError with near names
  Constant& constant(const std::string& name);
  /// By its first non-empty output. @throws ModelError with near names
  onnx::NodeProto& node(const std::string& key);
  bool is_initializer(const std::string& name) const;

  /// The constant that `name` shows through Identity nodes; `name` itself if there is none.
  const std::string& root_of(const std::string& name) const;

  bool is_used(const std::string& name) const { return names_.contains(name); }
  int readers(const std::string& name) const;
  /// `wanted`, or `wanted` with a number that makes it unique.
  std::string fresh_name(const std::string& wanted) const;

  /// Adds an initializer and, where the IR version asks for it, a graph input.
  onnx::TensorProto& add(onnx::TensorProto tensor);

  /// Makes the node read `name` there; what then has no reader is remembered for `purge`.
  void set_input(onnx::NodeProto& node, int input, const std::string& name);

  /// Makes what reads the node's output read its input `input`, and removes the node with all that
  /// only it needed; constants are remembered for `purge`.
  /// @throws ModelError if the output is the graph's, or is read inside a subgraph
  void bypass(const std::string& key, int input);

  /// Brings the declaration of an initializer, if it has one, to new dims.
  void declare(const std::string& initializer, const Shape& dims);

  /// Removes the constants, and the Identity nodes behind them, that edits left without a reader.
  void purge();

 private:
  void count_reads(const onnx::GraphProto& graph);
  void drop_reader(const std::string& name);
  void remove_unread(onnx::NodeProto& node);
  void erase(const std::unordered_set<const onnx::NodeProto*>& nodes);
  void index_graph();
  void find_roots();

  onnx::ModelProto& model_;
  std::unordered_map<std::string, Constant> constants_;
  absl::flat_hash_map<std::string, onnx::ValueInfoProto*> inputs_;
  absl::flat_hash_map<std::string, onnx::NodeProto*> nodes_;
  std::unordered_map<std::string, std::string> identities_;  // output -> input
  std::unordered_map<std::string, std::string> roots_;  // output of an Identity -> its constant
  absl::flat_hash_map<std::string, int> readers_;
  absl::flat_hash_set<std::string> names_;
  std::unordered_set<std::string> unread_;
};

}  // namespace parsimony::onnx_io
