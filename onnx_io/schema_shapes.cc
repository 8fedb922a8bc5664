#include <onnx/defs/schema.h>
#include <onnx/defs/shape_inference.h>
#include <onnx/onnx_pb.h>

#include <algorithm>
#include <deque>
#include <exception>

#include "parsimony/onnx_io/graph_file_impl.h"
#include "parsimony/onnx_io/reader_impl.h"
#include "parsimony/onnx_io/tensor_impl.h"

namespace parsimony::onnx_io {
namespace {

/// The context of one node for libonnx's shape inference.
class Context final : public onnx::InferenceContext {
 public:
  /// @param assumed  the type of tensors with unknown type
  Context(const NodeView& view, DType assumed) : outputs_(static_cast<size_t>(view.outputs())) {
    const Node& node = view.node();
    node_.set_op_type(node.op);
    node_.set_domain(node.domain);
    set_attributes(node, node_);
    for (const ValueId output : node.outputs) node_.add_output(output == kNone ? "" : "y");
    for (int i = 0; i < view.inputs(); ++i) {
      node_.add_input(view.has_input(i) ? "x" : "");
      inputs_.push_back(type_of(view, i, assumed));
      constants_.emplace_back();
      const HostTensor* constant = view.constant(i);
      if (constant != nullptr) constants_.back() = tensor_of("", *constant);
    }
  }

  /// Checks the node against the schema, which libonnx's functions rely on. @throws std::exception
  /// if operands, types or attributes do not match
  void want_fit(const onnx::OpSchema& schema) {
    schema.Verify(node_);
    for (int i = 0; i < node_.input_size(); ++i) {
      const bool typed = inputs_[i].has_tensor_type();
      if (!node_.input(i).empty() && !typed) throw std::invalid_argument("no tensor");
    }
    schema.CheckInputOutputType(*this);
  }

  const onnx::AttributeProto* getAttribute(const std::string& name) const override {
    const auto found = std::ranges::find(node_.attribute(), name, &onnx::AttributeProto::name);
    return found == node_.attribute().end() ? nullptr : &*found;
  }
  size_t getNumInputs() const override { return inputs_.size(); }
  const onnx::TypeProto* getInputType(size_t i) const override {
    return i < inputs_.size() && inputs_[i].has_tensor_type() ? &inputs_[i] : nullptr;
  }
  const onnx::TensorProto* getInputData(size_t i) const override {
    return i < constants_.size() && constants_[i] ? &*constants_[i] : nullptr;
  }
  size_t getNumOutputs() const override { return outputs_.size(); }
  onnx::TypeProto* getOutputType(size_t i) override { return &outputs_.at(i); }
  onnx::GraphInferencer* getGraphAttributeInferencer(const std::string&) override {
    return nullptr;
  }
  const onnx::SparseTensorProto* getInputSparseData(size_t) const override { return nullptr; }
  const onnx::TensorShapeProto* getSymbolicInput(size_t) const override { return nullptr; }

  std::vector<std::optional<Shape>> shapes() const {
    std::vector<std::optional<Shape>> shapes;
    for (const onnx::TypeProto& type : outputs_) shapes.push_back(shape_of(type));
    return shapes;
  }

 private:
  static onnx::TypeProto type_of(const NodeView& view, int i, DType assumed) {
    onnx::TypeProto type;
    const Shape* shape = view.in_shape(i);
    DType dtype = view.has_input(i) ? view.graph().value(view.input(i)).dtype : DType();
    // Without a shape it may be a map or a sequence.
    if (dtype == DType::kUnknown && shape != nullptr) dtype = assumed;
    if (dtype == DType::kUnknown) return type;
    type.mutable_tensor_type()->set_elem_type(onnx_number(dtype));
    if (shape != nullptr) {
      auto& dims = *type.mutable_tensor_type()->mutable_shape();
      for (const int64_t dim : *shape) dims.add_dim()->set_dim_value(dim);
    }
    return type;
  }

  static std::optional<Shape> shape_of(const onnx::TypeProto& type) {
    if (!type.has_tensor_type() || !type.tensor_type().has_shape()) return std::nullopt;
    Shape shape;
    for (const auto& dim : type.tensor_type().shape().dim()) {
      if (!dim.has_dim_value() || dim.dim_value() < 0) return std::nullopt;
      shape.push_back(dim.dim_value());
    }
    return shape;
  }

  onnx::NodeProto node_;
  std::vector<onnx::TypeProto> inputs_;
  std::deque<std::optional<onnx::TensorProto>> constants_;
  std::vector<onnx::TypeProto> outputs_;
};

bool has_bodies(const onnx::OpSchema& schema) {
  return std::ranges::any_of(schema.attributes(), [](const auto& attribute) {
    return attribute.second.type == onnx::AttributeProto::GRAPH ||
           attribute.second.type == onnx::AttributeProto::GRAPHS;
  });
}

}  // namespace

std::vector<std::optional<Shape>> shapes_by_schema(const NodeView& node) {
  const onnx::OpSchema* schema =
      onnx::OpSchemaRegistry::Schema(node.node().op, node.opset(), node.node().domain);
  if (schema == nullptr || !schema->has_type_and_shape_inference_function()) return {};
  if (has_bodies(*schema)) return {};
  // Shapes seldom depend on types: any type that the schema allows will do.
  for (const DType assumed : {DType::kFloat32, DType::kInt64, DType::kString}) {
    try {
      Context context(node, assumed);
      context.want_fit(*schema);
      schema->GetTypeAndShapeInferenceFunction()(context);
      return context.shapes();
    } catch (const std::exception&) {  // no shapes for nodes that do not fit the schema
    }
  }
  return {};
}

}  // namespace parsimony::onnx_io
