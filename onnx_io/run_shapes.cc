#include <onnx/onnx_pb.h>

#include <algorithm>
#include <optional>

#include "parsimony/base/errors.h"
#include "parsimony/engines/onnx_runtime.h"
#include "parsimony/graph/elements.h"
#include "parsimony/onnx_io/graph_file_impl.h"
#include "parsimony/onnx_io/reader_impl.h"
#include "parsimony/onnx_io/tensor_impl.h"

namespace parsimony::onnx_io {
namespace {

constexpr int64_t kMostElements = int64_t{1} << 22;  // of an operand
constexpr int64_t kPlainOpset = 17;
constexpr int64_t kIrVersion = 10;

/// Null where there is none.
const runtime::OnnxRuntime* library() {
  static const auto found = []() -> std::optional<runtime::OnnxRuntime> {
    try {
      return runtime::find_onnx_runtime();
    } catch (const Error&) {
      return std::nullopt;
    }
  }();
  return found ? &*found : nullptr;
}

bool is_declared(const NodeView& view) {
  return std::ranges::all_of(view.node().outputs, [&](ValueId v) {
    return v == kNone || view.graph().value(v).declared.has_value();
  });
}

/// A model of the node alone, and zeros for its operands but constants. False if something about an
/// operand is not known.
bool alone(const NodeView& view, onnx::ModelProto& model, TensorList& inputs) {
  const Node& node = view.node();
  model.set_ir_version(kIrVersion);
  auto& own = *model.add_opset_import();
  own.set_domain(node.domain);
  own.set_version(view.opset());
  if (!node.domain.empty()) model.add_opset_import()->set_version(kPlainOpset);
  onnx::GraphProto& graph = *model.mutable_graph();
  graph.set_name("node");
  onnx::NodeProto& proto = *graph.add_node();
  proto.set_op_type(node.op);
  proto.set_domain(node.domain);
  set_attributes(node, proto);
  for (int i = 0; i < view.inputs(); ++i) {
    const std::string name = view.has_input(i) ? "x" + std::to_string(i) : "";
    proto.add_input(name);
    if (name.empty()) continue;
    if (const HostTensor* constant = view.constant(i)) {
      *graph.add_initializer() = tensor_of(name, *constant);
      continue;
    }
    const Shape* shape = view.in_shape(i);
    DType type = view.graph().value(view.input(i)).dtype;
    if (type == DType::kUnknown) type = DType::kFloat32;
    if (shape == nullptr || size_of(type) == 0 || element_count(*shape) > kMostElements)
      return false;
    onnx::ValueInfoProto& input = *graph.add_input();
    input.set_name(name);
    auto& tensor = *input.mutable_type()->mutable_tensor_type();
    tensor.set_elem_type(onnx_number(type));
    for (const int64_t size : *shape) tensor.mutable_shape()->add_dim()->set_dim_value(size);
    const auto bytes = static_cast<size_t>(element_count(*shape) * size_of(type));
    inputs.push_back({name, type, *shape, std::vector<std::byte>(bytes)});
  }
  for (int i = 0; i < view.outputs(); ++i) {
    const std::string name = view.output(i) == kNone ? "" : "y" + std::to_string(i);
    proto.add_output(name);
    if (!name.empty()) graph.add_output()->set_name(name);
  }
  return true;
}

void fill_with_ones(TensorBytes& tensor) {
  const int64_t size = size_of(tensor.dtype);
  for (int64_t at = 0; at < std::ssize(tensor.bytes); at += size) {
    write_number(1, tensor.dtype, tensor.bytes.data() + at);
  }
}

}  // namespace

std::vector<std::optional<Shape>> shapes_by_running(const NodeView& view) {
  if (view.node().has_subgraph || is_declared(view) || library() == nullptr) return {};
  onnx::ModelProto model;
  TensorList inputs;
  try {
    if (!alone(view, model, inputs)) return {};
    const auto network = library()->open_bytes(model.SerializeAsString(), {});
    const TensorList results = network->run({inputs}).front();
    for (TensorBytes& input : inputs) fill_with_ones(input);
    const TensorList others = network->run({inputs}).front();
    const bool same =
        std::ranges::equal(results, others, {}, &TensorBytes::dims, &TensorBytes::dims);
    if (!same) return {};  // data decide
    std::vector<std::optional<Shape>> shapes;
    auto next = results.begin();
    for (const ValueId v : view.node().outputs) {
      if (v == kNone || next == results.end()) {
        shapes.emplace_back();
      } else {
        shapes.emplace_back((next++)->dims);
      }
    }
    return shapes;
  } catch (const Error&) {  // it knows the operator no better
    return {};
  }
}

}  // namespace parsimony::onnx_io
