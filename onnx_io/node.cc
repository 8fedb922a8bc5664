#include <cstring>
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
  value.dtype = dtype_of_onnx(type.elem_type());
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

namespace {

template <typename T>
const std::byte* keep(T number, Scalars& scalars) {
  auto& place = scalars.emplace_back();
  std::memcpy(place.data(), &number, sizeof(number));
  return place.data();
}

}  // namespace

int value_attribute(const onnx::NodeProto& node) {
  for (int i = 0; i < node.attribute_size(); ++i) {
    const auto& attribute = node.attribute(i);
    if (attribute.has_t() || attribute.name().starts_with("value_")) return i;
  }
  return -1;
}

std::optional<Weight> list_constant(const onnx::AttributeProto& attribute, Scalars& scalars) {
  const std::string& name = attribute.name();
  const auto view = [](DType type, Shape dims, const void* data) {
    return Weight{{}, type, std::move(dims), static_cast<const std::byte*>(data), size_of(type)};
  };
  if (name == "value_ints") {
    return view(DType::kInt64, {attribute.ints_size()}, attribute.ints().data());
  }
  if (name == "value_floats") {
    return view(DType::kFloat32, {attribute.floats_size()}, attribute.floats().data());
  }
  if (name == "value_int") return view(DType::kInt64, {}, keep(attribute.i(), scalars));
  if (name == "value_float") return view(DType::kFloat32, {}, keep(attribute.f(), scalars));
  return std::nullopt;
}

namespace {

using onnx::AttributeProto;

constexpr int64_t kLargestTensor = 1 << 12;

/// Returns the attribute's type, which very old exporters omit.
AttributeProto::AttributeType type_of(const AttributeProto& attribute) {
  if (attribute.type() != AttributeProto::UNDEFINED) return attribute.type();
  if (attribute.has_f()) return AttributeProto::FLOAT;
  if (attribute.has_i()) return AttributeProto::INT;
  if (attribute.has_s()) return AttributeProto::STRING;
  if (attribute.has_t()) return AttributeProto::TENSOR;
  if (attribute.has_g()) return AttributeProto::GRAPH;
  if (attribute.floats_size() > 0) return AttributeProto::FLOATS;
  if (attribute.strings_size() > 0) return AttributeProto::STRINGS;
  if (attribute.graphs_size() > 0) return AttributeProto::GRAPHS;
  return AttributeProto::INTS;
}

void read_tensor(const AttributeProto& attribute, ExternalData& external, Node& to) {
  const onnx::TensorProto& tensor = attribute.t();
  if (size_of(dtype_of_onnx(tensor.data_type())) == 0) return;
  Weight weight = view_of(tensor, attribute.name(), external);
  if (weight.count() > kLargestTensor) return;
  std::vector<std::byte> elements;
  if (is_packed(weight.dtype)) {
    elements = unpacked(tensor, attribute.name(), external);
    weight.data = elements.data();
    weight.stride = 1;
  }
  HostTensor values = to_host(weight);
  to.attributes.emplace_back(attribute.name() + ".dtype", std::string(name_of(weight.dtype)));
  if (values.floating()) {
    to.attributes.emplace_back(attribute.name(), std::move(values.floats));
  } else {
    to.attributes.emplace_back(attribute.name(), std::move(values.ints));
  }
}

void read_attribute(const AttributeProto& attribute, ExternalData& external, Node& to) {
  const auto add = [&](Attribute value) {
    to.attributes.emplace_back(attribute.name(), std::move(value));
  };
  switch (type_of(attribute)) {
    case AttributeProto::FLOAT:
      return add(static_cast<double>(attribute.f()));
    case AttributeProto::INT:
      return add(int64_t{attribute.i()});
    case AttributeProto::STRING:
      return add(attribute.s());
    case AttributeProto::FLOATS:
      return add(std::vector<double>(attribute.floats().begin(), attribute.floats().end()));
    case AttributeProto::INTS:
      return add(std::vector<int64_t>(attribute.ints().begin(), attribute.ints().end()));
    case AttributeProto::STRINGS:
      return add(std::vector<std::string>(attribute.strings().begin(), attribute.strings().end()));
    case AttributeProto::TENSOR:
      return read_tensor(attribute, external, to);
    case AttributeProto::GRAPH:
    case AttributeProto::GRAPHS:
      to.has_subgraph = true;
      return;
    default:
      return;
  }
}

}  // namespace

void read_attributes(const onnx::NodeProto& from, ExternalData& external, Node& to) {
  to.attributes.reserve(from.attribute_size());
  for (const AttributeProto& attribute : from.attribute()) read_attribute(attribute, external, to);
}

}  // namespace parsimony::onnx_io
