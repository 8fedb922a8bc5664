#include "parsimony/onnx_io/graph_file.h"

#include <onnx/onnx_pb.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "parsimony/base/errors.h"
#include "parsimony/base/ranges.h"
#include "parsimony/graph/attributes.h"
#include "parsimony/graph/elements.h"
#include "parsimony/graph/reads.h"
#include "parsimony/onnx_io/graph_file_impl.h"
#include "parsimony/onnx_io/tensor_impl.h"

namespace parsimony::onnx_io {
namespace {

UnsupportedError not_writable(std::string_view what, std::string_view why) {
  return UnsupportedError(in_quotes(what), " ", why,
                          ": it cannot be written as an ONNX model of its own");
}

using onnx::AttributeProto;

constexpr int kIrVersion = 8;
constexpr const char* kTypeSuffix = ".dtype";

void set(AttributeProto& to, int64_t value) {
  to.set_type(AttributeProto::INT);
  to.set_i(value);
}
void set(AttributeProto& to, double value) {
  to.set_type(AttributeProto::FLOAT);
  to.set_f(static_cast<float>(value));
}
void set(AttributeProto& to, const std::string& value) {
  to.set_type(AttributeProto::STRING);
  to.set_s(value);
}
void set(AttributeProto& to, const std::vector<int64_t>& values) {
  to.set_type(AttributeProto::INTS);
  for (const int64_t value : values) to.add_ints(value);
}
void set(AttributeProto& to, const std::vector<double>& values) {
  to.set_type(AttributeProto::FLOATS);
  for (const double value : values) to.add_floats(static_cast<float>(value));
}
void set(AttributeProto& to, const std::vector<std::string>& values) {
  to.set_type(AttributeProto::STRINGS);
  for (const std::string& value : values) to.add_strings(value);
}

DType dtype_named(std::string_view name) {
  for (int type = 0; type <= static_cast<int>(DType::kString); ++type) {
    if (name_of(static_cast<DType>(type)) == name) return static_cast<DType>(type);
  }
  return DType::kUnknown;
}

/// Sets a small tensor attribute, which a node stores as a list.
void set_tensor(AttributeProto& to, const Attribute& value, const std::string& type) {
  HostTensor tensor;
  tensor.dtype = dtype_named(type);
  if (const auto* ints = std::get_if<std::vector<int64_t>>(&value)) tensor.ints = *ints;
  if (const auto* floats = std::get_if<std::vector<double>>(&value)) tensor.floats = *floats;
  tensor.dims = {tensor.count()};
  to.set_type(AttributeProto::TENSOR);
  *to.mutable_t() = tensor_of("", tensor);
}

void add_nodes(const Graph& graph, BodyId body, onnx::GraphProto& to);

void add_body(const Graph& graph, const Body& body, BodyId id, onnx::NodeProto& to) {
  AttributeProto& attribute = *to.add_attribute();
  attribute.set_name(body.attribute);
  attribute.set_type(AttributeProto::GRAPH);
  onnx::GraphProto& inside = *attribute.mutable_g();
  inside.set_name(body.attribute);
  const auto typed = [&](ValueId v, onnx::ValueInfoProto& info) {
    info.set_name(graph.value(v).name);
    set_type(graph.value(v), info);
  };
  for (const ValueId v : body.inputs) typed(v, *inside.add_input());
  add_nodes(graph, id, inside);
  std::set<std::string> made;
  for (const onnx::NodeProto& node : inside.node()) {
    made.insert(node.output().begin(), node.output().end());
  }
  for (const ValueId v : body.outputs) {
    onnx::ValueInfoProto& result = *inside.add_output();
    typed(v, result);
    if (made.contains(graph.value(v).name)) continue;
    result.set_name(str_cat(to.output(0), kInside, body.attribute, kInside, inside.output_size(),
                            kInside, graph.value(v).name));
    onnx::NodeProto& copy = *inside.add_node();  // ONNX has no results that a body does not compute
    copy.set_op_type("Identity");
    copy.add_input(graph.value(v).name);
    copy.add_output(result.name());
  }
}

void add_node(const Graph& graph, const Node& node, onnx::GraphProto& to) {
  if (node.has_subgraph && node.bodies.empty()) {
    throw not_writable(label_of(graph, node), "has a body");
  }
  onnx::NodeProto& proto = *to.add_node();
  proto.set_name(node.name);
  proto.set_op_type(node.op);
  proto.set_domain(node.domain);
  const auto name = [&](ValueId v) { return v == kNone ? std::string() : graph.value(v).name; };
  for (const ValueId v : node.inputs) proto.add_input(name(v));
  for (const ValueId v : node.outputs) proto.add_output(name(v));
  set_attributes(node, proto);
  for (const BodyId body : node.bodies) add_body(graph, graph.bodies[body], body, proto);
}

/// Adds the nodes that stand in this body, kNone: in none.
void add_nodes(const Graph& graph, BodyId body, onnx::GraphProto& to) {
  for (const Node& node : graph.nodes) {
    if (node.body == body) add_node(graph, node, to);
  }
}

void add_weight(const Value& value, const Weight& weight, const std::optional<ExternalPlace>& place,
                onnx::GraphProto& to) {
  const bool lacks = weight.data == nullptr && weight.count() > 0;
  if (size_of(weight.dtype) == 0 || lacks) {
    throw not_writable(value.name, "has no elements");
  }
  onnx::TensorProto& tensor = *to.add_initializer();
  tensor.set_name(value.name);
  tensor.set_data_type(onnx_number(weight.dtype));
  for (const int64_t dim : weight.dims) tensor.add_dims(dim);
  if (!place) return set_raw(tensor, dense_bytes(weight));
  tensor.set_data_location(onnx::TensorProto::EXTERNAL);
  const auto add = [&](const char* key, const std::string& text) {
    onnx::StringStringEntryProto& entry = *tensor.add_external_data();
    entry.set_key(key);
    entry.set_value(text);
  };
  add("location", place->file);
  add("offset", std::to_string(place->offset));
  add("length", std::to_string(weight.count() * static_cast<int64_t>(size_of(weight.dtype))));
}

}  // namespace

void set_attributes(const Node& node, onnx::NodeProto& proto) {
  for (const auto& [attribute, value] : node.attributes) {
    if (attribute.ends_with(kTypeSuffix)) continue;
    AttributeProto& added = *proto.add_attribute();
    added.set_name(attribute);
    if (const std::string* type = attr_if<std::string>(node, attribute + kTypeSuffix)) {
      set_tensor(added, value, *type);
    } else {
      std::visit([&](const auto& held) { set(added, held); }, value);
    }
  }
}

void set_type(const Value& value, onnx::ValueInfoProto& info) {
  auto& type = *info.mutable_type()->mutable_tensor_type();
  type.set_elem_type(onnx_number(value.dtype));
  if (!value.declared) return;
  auto& shape = *type.mutable_shape();
  for (size_t d = 0; d < value.declared->size(); ++d) {
    auto& added = *shape.add_dim();
    if ((*value.declared)[d] >= 0) {
      added.set_dim_value((*value.declared)[d]);
    } else if (d < value.symbols.size() && !value.symbols[d].empty()) {
      added.set_dim_param(value.symbols[d]);
    }
  }
}

onnx::ModelProto model_of(const Graph& graph,
                          const std::function<std::optional<ExternalPlace>(const Weight&)>& place) {
  if (graph.format != "onnx") throw not_writable(graph.format, "is not an ONNX model");
  onnx::ModelProto model;
  model.set_ir_version(kIrVersion);
  onnx::GraphProto& to = *model.mutable_graph();
  to.set_name("graph");
  std::map<std::string, int> opsets;
  for (const Node& node : graph.nodes) {
    int& opset = opsets[node.domain];
    opset = std::max(opset, node.opset);
  }
  add_nodes(graph, kNone, to);
  for (const auto& [domain, version] : opsets) {
    onnx::OperatorSetIdProto& import = *model.add_opset_import();
    import.set_domain(domain);
    import.set_version(version);
  }
  IdVector<ValueId, bool> read(graph.values.size(), false);
  for (const ValueId output : graph.outputs) read[output] = true;
  for (const Node& node : graph.nodes) {
    for (const ValueId value : node.outputs) {
      if (node.body == kNone || value == kNone || !contains(graph.outputs, value)) continue;
      throw not_writable(graph.value(value).name, "is an output, and computed in a branch or loop");
    }
    for_each_read(graph, node, [&](ValueId v) { read[v] = true; });
  }
  for (const ValueId v : graph.values.ids()) {
    const Value& value = graph.value(v);
    if (!read[v] || value.weight == kNone) continue;
    const Weight& weight = graph.weight(value.weight);
    add_weight(value, weight, place ? place(weight) : std::nullopt, to);
  }
  for (const ValueId input : graph.inputs) {
    onnx::ValueInfoProto& info = *to.add_input();
    info.set_name(graph.value(input).name);
    set_type(graph.value(input), info);
  }
  for (const ValueId output : graph.outputs) to.add_output()->set_name(graph.value(output).name);
  return model;
}

std::string to_onnx(const Graph& graph) { return model_of(graph).SerializeAsString(); }

}  // namespace parsimony::onnx_io
