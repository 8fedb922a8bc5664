// The model-local functions of a model, and their calls.
#pragma once

#include <absl/container/flat_hash_map.h>
#include <onnx/onnx_pb.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace parsimony::onnx_io {

class Functions {
 public:
  explicit Functions(const onnx::ModelProto& model);

  /// Position in the model's list of the function that the node calls; -1 if it calls none, or one
  /// that is not inlined: overloaded, recursive, or with too many nodes.
  int called_by(const onnx::NodeProto& node) const;
  /// How often it is called in all, counting the calls of its callers.
  int calls(int function) const { return calls_[function]; }
  bool empty() const { return calls_.empty(); }

 private:
  using Nodes = google::protobuf::RepeatedPtrField<onnx::NodeProto>;

  bool count(const Nodes& nodes, int depth);

  const onnx::ModelProto& model_;
  std::map<std::pair<std::string, std::string>, int> by_name_;  // domain and name
  std::vector<int> calls_;
  int64_t nodes_ = 0;  ///< after inlining all calls
};

/// The values of a function's attributes in one call: those given by the call, then defaults.
using CallAttributes = absl::flat_hash_map<std::string, onnx::AttributeProto>;
CallAttributes attributes_of(const onnx::NodeProto& call, const onnx::FunctionProto& function);

/// Does an attribute of the node refer to one of the call?
bool refers(const onnx::NodeProto& node);
/// The node with references replaced by the call's attributes; those that the call does not give
/// are dropped.
onnx::NodeProto substituted(const onnx::NodeProto& node, const CallAttributes& attributes);

/// "y::Layer::": the prefix of names that the function defines in this call.
std::string inside_call(const onnx::NodeProto& call);

}  // namespace parsimony::onnx_io
