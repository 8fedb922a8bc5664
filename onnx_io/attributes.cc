#include <utility>

#include "parsimony/onnx_io/attributes_impl.h"
#include "parsimony/onnx_io/tensor_impl.h"

namespace parsimony::onnx_io {
namespace {

using onnx::AttributeProto;

constexpr int64_t kLargestTensor = 1 << 12;

/// Very old exporters leave the type out.
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
  if (size_of(dtype_of(tensor.data_type())) == 0) return;
  const Weight weight = view_of(tensor, attribute.name(), external);
  if (weight.count() > kLargestTensor) return;
  HostTensor values = to_host(weight);
  to.attributes.emplace_back(attribute.name() + ".dtype", std::string(name_of(weight.dtype)));
  if (values.floating()) {
    to.attributes.emplace_back(attribute.name(), std::move(values.floats));
  } else {
    to.attributes.emplace_back(attribute.name(), std::move(values.ints));
  }
}

}  // namespace

void read_attributes(const onnx::NodeProto& from, ExternalData& external, Node& to) {
  to.attributes.reserve(from.attribute_size());
  for (const AttributeProto& attribute : from.attribute()) {
    const auto add = [&](Attribute value) {
      to.attributes.emplace_back(attribute.name(), std::move(value));
    };
    switch (type_of(attribute)) {
      case AttributeProto::FLOAT:
        add(static_cast<double>(attribute.f()));
        break;
      case AttributeProto::INT:
        add(int64_t{attribute.i()});
        break;
      case AttributeProto::STRING:
        add(attribute.s());
        break;
      case AttributeProto::FLOATS:
        add(std::vector<double>(attribute.floats().begin(), attribute.floats().end()));
        break;
      case AttributeProto::INTS:
        add(std::vector<int64_t>(attribute.ints().begin(), attribute.ints().end()));
        break;
      case AttributeProto::STRINGS:
        add(std::vector<std::string>(attribute.strings().begin(), attribute.strings().end()));
        break;
      case AttributeProto::TENSOR:
        read_tensor(attribute, external, to);
        break;
      case AttributeProto::GRAPH:
      case AttributeProto::GRAPHS:
        to.has_subgraph = true;
        break;
      default:
        break;
    }
  }
}

}  // namespace parsimony::onnx_io
