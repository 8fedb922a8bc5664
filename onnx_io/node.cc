#include <utility>

#include "parsimony/onnx_io/node_impl.h"
#include "parsimony/onnx_io/tensor_impl.h"

namespace parsimony::onnx_io {

std::string canonical_domain(const std::string& domain) {
  return domain == "ai.onnx" ? std::string() : domain;
}

bool is_standard(const onnx::NodeProto& node, std::string_view op) {
  return node.op_type() == op && (node.domain().empty() || node.domain() == "ai.onnx");
}

bool is_identity(const onnx::NodeProto& node) {
  return node.input_size() == 1 && node.output_size() == 1 && is_standard(node, "Identity");
}

const std::string& key_of(const onnx::NodeProto& node) {
  static const std::string nothing;
  for (const std::string& name : node.output()) {
    if (!name.empty()) return name;
  }
  return nothing;
}

const std::string& label_of(const onnx::NodeProto& node) {
  return node.name().empty() ? key_of(node) : node.name();
}

std::string inside(const onnx::NodeProto& node, const std::string& attribute) {
  const std::string between(kInside);
  return key_of(node) + between + attribute + between;
}

void declare(const onnx::ValueInfoProto& info, Value& value) {
  if (!info.type().has_tensor_type()) return;
  const auto& type = info.type().tensor_type();
  value.dtype = dtype_of(type.elem_type());
  if (!type.has_shape()) return;
  Shape dims;
  std::vector<std::string> symbols;
  for (const auto& dim : type.shape().dim()) {
    const bool fixed = dim.has_dim_value() && dim.dim_value() >= 0;
    dims.push_back(fixed ? dim.dim_value() : -1);
    symbols.push_back(dim.dim_param());
  }
  value.declared = std::move(dims);
  value.symbols = std::move(symbols);
}

}  // namespace parsimony::onnx_io
