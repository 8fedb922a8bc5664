#include "parsimony/onnx_io/tensor_impl.h"

namespace parsimony::onnx_io {
namespace {

using Visit = std::function<void(onnx::TensorProto&)>;

void walk_graph(onnx::GraphProto& graph, const Visit& visit);

void walk_nodes(google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes, const Visit& visit) {
  for (onnx::NodeProto& node : nodes) {
    for (onnx::AttributeProto& attribute : *node.mutable_attribute()) {
      if (attribute.has_t()) visit(*attribute.mutable_t());
      for (onnx::TensorProto& tensor : *attribute.mutable_tensors()) visit(tensor);
      if (attribute.has_g()) walk_graph(*attribute.mutable_g(), visit);
      for (onnx::GraphProto& graph : *attribute.mutable_graphs()) walk_graph(graph, visit);
    }
  }
}

void walk_graph(onnx::GraphProto& graph, const Visit& visit) {
  for (onnx::TensorProto& tensor : *graph.mutable_initializer()) visit(tensor);
  for (onnx::SparseTensorProto& sparse : *graph.mutable_sparse_initializer()) {
    if (sparse.has_values()) visit(*sparse.mutable_values());
    if (sparse.has_indices()) visit(*sparse.mutable_indices());
  }
  walk_nodes(*graph.mutable_node(), visit);
}

}  // namespace

void for_each_tensor(onnx::ModelProto& model, const Visit& visit) {
  if (model.has_graph()) walk_graph(*model.mutable_graph(), visit);
  for (onnx::FunctionProto& function : *model.mutable_functions()) {
    walk_nodes(*function.mutable_node(), visit);
  }
  for (onnx::TrainingInfoProto& training : *model.mutable_training_info()) {
    if (training.has_initialization()) walk_graph(*training.mutable_initialization(), visit);
    if (training.has_algorithm()) walk_graph(*training.mutable_algorithm(), visit);
  }
}

}  // namespace parsimony::onnx_io
