#include <absl/container/flat_hash_map.h>

#include <string_view>
#include <vector>

#include "parsimony/onnx_io/duplicates_impl.h"
#include "parsimony/onnx_io/node_impl.h"

namespace parsimony::onnx_io {
namespace {

/// The tensor that a Constant node gives; null for other nodes.
const onnx::TensorProto* constant_of(const onnx::NodeProto& node) {
  if (!is_standard(node, "Constant") || node.output_size() != 1) return nullptr;
  const int at = value_attribute(node);
  return at >= 0 && node.attribute(at).has_t() ? &node.attribute(at).t() : nullptr;
}

bool equal_tensors(const onnx::TensorProto& a, const onnx::TensorProto& b) {
  onnx::TensorProto unnamed_a = a;
  onnx::TensorProto unnamed_b = b;
  for (onnx::TensorProto* tensor : {&unnamed_a, &unnamed_b}) {
    tensor->clear_name();
    tensor->clear_doc_string();
  }
  return unnamed_a.SerializeAsString() == unnamed_b.SerializeAsString();
}

/// Constants that are defined so far, by name.
class Constants {
 public:
  /// Is it defined already, and alike?
  bool repeats(std::string_view name, const onnx::TensorProto& tensor) {
    const auto [known, is_new] = known_.try_emplace(name, &tensor);
    return !is_new && equal_tensors(*known->second, tensor);
  }

 private:
  absl::flat_hash_map<std::string_view, const onnx::TensorProto*> known_;
};

}  // namespace

void drop_duplicates(onnx::GraphProto& graph) {
  Constants constants;
  auto& tensors = *graph.mutable_initializer();
  auto& nodes = *graph.mutable_node();
  // Those that stay are never moved: the table refers to them.
  std::vector<int> repeated;
  for (int i = 0; i < tensors.size(); ++i) {
    if (constants.repeats(tensors[i].name(), tensors[i])) repeated.push_back(i);
  }
  std::vector<int> repeating;
  for (int i = 0; i < nodes.size(); ++i) {
    const onnx::TensorProto* tensor = constant_of(nodes[i]);
    if (tensor != nullptr && constants.repeats(nodes[i].output(0), *tensor)) repeating.push_back(i);
  }
  for (auto i = repeated.rbegin(); i != repeated.rend(); ++i) tensors.DeleteSubrange(*i, 1);
  for (auto i = repeating.rbegin(); i != repeating.rend(); ++i) nodes.DeleteSubrange(*i, 1);
  for (onnx::NodeProto& node : nodes) {
    for_each_body(node, [](const std::string&, onnx::GraphProto& body) { drop_duplicates(body); });
  }
}

}  // namespace parsimony::onnx_io
