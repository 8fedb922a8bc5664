// An index of a model's tensors, nodes and uses by name. Names inside bodies and functions begin
// with their path, as in a Graph: "y::then_branch::w".
#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>
#include <onnx/onnx_pb.h>

#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "parsimony/base/types.h"
#include "parsimony/onnx_io/functions_impl.h"

namespace parsimony::onnx_io {

/// A scope of names: the model's graph, a body, or a function that is called once.
struct Scope {
  /// Null once it is removed.
  google::protobuf::RepeatedPtrField<onnx::NodeProto>* nodes = nullptr;
  onnx::GraphProto* graph = nullptr;       ///< null for a function
  std::string prefix;                      ///< of its names: "" or "y::then_branch::"
  const Scope* around = nullptr;           ///< whose names are visible in a body
  const onnx::NodeProto* owner = nullptr;  ///< null for the model's graph
  absl::flat_hash_set<std::string> names;  ///< what a body defines, without the prefix
  absl::flat_hash_map<std::string, std::string> results;  ///< of a function: names in the call

  bool is_main() const { return owner == nullptr; }
  std::string own(const std::string& name) const {
    const auto result = results.find(name);
    return result == results.end() ? prefix + name : result->second;
  }
};

/// A tensor that the model holds. Exactly one of `tensor` and `attribute` is set; the attribute is
/// value_int, value_ints, value_float or value_floats of a Constant node.
struct Constant {
  onnx::TensorProto* tensor = nullptr;
  onnx::AttributeProto* attribute = nullptr;
  bool is_initializer = false;
  Scope* scope = nullptr;
};

/// A node and its scope.
struct PlacedNode {
  onnx::NodeProto* node = nullptr;
  Scope* scope = nullptr;
};

class ModelIndex {
 public:
  explicit ModelIndex(onnx::ModelProto& model);

  /// @throws ModelError with similar names
  Constant& constant(const std::string& name);
  /// By its first non-empty output. @throws ModelError with similar names
  PlacedNode node(const std::string& key);
  /// An initializer, or a Constant node that is not one of the lists.
  bool holds_tensor(const std::string& name) const;
  std::deque<Scope>& scopes() { return scopes_; }

  /// Resolves a name without a path in a scope.
  std::string full_name(const Scope& scope, const std::string& name) const;
  /// The constant behind `name`, through Identity nodes; `name` itself if there is none.
  const std::string& root_of(const std::string& name) const;

  /// Does some graph of the model define this name, without a path?
  bool is_used(const std::string& name) const { return names_.contains(name); }
  int readers(const std::string& name) const;
  /// `wanted`, or `wanted` with a number that makes it unique; without a path.
  std::string fresh_name(const std::string& wanted) const;

  /// Adds a constant to a scope, named without the path: an initializer with, where the IR version
  /// asks for it, a graph input; a Constant node where a body cannot have such an input.
  onnx::TensorProto& add(onnx::TensorProto tensor, Scope& scope);

  /// Makes the node read `name` there, a name without a path; constants that lose their last reader
  /// are recorded for `purge`.
  void set_input(const PlacedNode& node, int input, const std::string& name);

  /// Redirects readers of the node's output to its input `input`, and removes the node with
  /// everything that only it needed; constants are recorded for `purge`.
  /// @throws ModelError if the output is one of a graph's
  void bypass(const std::string& key, int input);

  /// Updates the declared dims of an initializer, if it is declared.
  void declare(const std::string& initializer, const Shape& dims);

  /// Removes constants, and Identity nodes of them, that have no reader left.
  void purge();

 private:
  Scope& add_graph(onnx::GraphProto& graph, std::string prefix, const Scope* around,
                   const onnx::NodeProto* owner);
  Scope& add_function(onnx::FunctionProto& function, const Scope& around,
                      const onnx::NodeProto& call);
  void index_nodes(Scope& scope);
  void index_constant(Scope& scope, onnx::NodeProto& node);
  void count_reads(const Scope& scope);
  void find_roots();
  void drop_reader(const std::string& name);
  void drop_reads(const PlacedNode& node, std::vector<std::string>& dropped);
  void check_bypass(const PlacedNode& node, int input) const;
  void remove_unread(const PlacedNode& node);
  void erase(const std::vector<PlacedNode>& nodes);
  void forget_inside(const onnx::NodeProto& owner);

  onnx::ModelProto& model_;
  const Functions functions_;
  std::deque<Scope> scopes_;  ///< the model's graph first; outer scopes before inner ones
  std::unordered_map<std::string, Constant> constants_;
  absl::flat_hash_map<std::string, onnx::ValueInfoProto*> inputs_;
  absl::flat_hash_map<std::string, PlacedNode> nodes_;
  std::unordered_map<std::string, std::string> identities_;  // output -> input
  std::unordered_map<std::string, std::string> roots_;  // output of an Identity -> its constant
  absl::flat_hash_map<std::string, int> readers_;
  absl::flat_hash_set<std::string> names_;  // without paths
  std::unordered_set<std::string> unread_;
};

}  // namespace parsimony::onnx_io
