// The functions that a model brings along, and who calls them.
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
  /// that is not followed: named twice (overloaded), calling itself, or unrolled to too many nodes.
  int called_by(const onnx::NodeProto& node) const;
  /// How often it runs where every call is followed: those of its callers count.
  int calls(int function) const { return calls_[function]; }
  bool empty() const { return calls_.empty(); }

 private:
  using Nodes = google::protobuf::RepeatedPtrField<onnx::NodeProto>;

  bool count(const Nodes& nodes, int depth);

  const onnx::ModelProto& model_;
  std::map<std::pair<std::string, std::string>, int> by_name_;  // domain and name
  std::vector<int> calls_;
  int64_t nodes_ = 0;  ///< that all calls unroll to
};

/// What the attributes of a function mean in one call: those that the call gives, then defaults.
using CallAttributes = absl::flat_hash_map<std::string, onnx::AttributeProto>;
CallAttributes attributes_of(const onnx::NodeProto& call, const onnx::FunctionProto& function);

/// Does an attribute of the node refer to one of the call?
bool refers(const onnx::NodeProto& node);
/// The node with the call's attributes in place of the references; those that the call does not
/// give are left out.
onnx::NodeProto substituted(const onnx::NodeProto& node, const CallAttributes& attributes);

/// "y::Layer::": how names begin that the function defines in this call.
std::string inside_call(const onnx::NodeProto& call);

}  // namespace parsimony::onnx_io
