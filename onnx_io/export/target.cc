
#include "parsimony/graph/attributes.h"
#include "parsimony/graph/operators/schema.h"
#include "parsimony/onnx_io/export/target_impl.h"
#include "parsimony/onnx_io/tensor_impl.h"

namespace parsimony::onnx_io {
namespace {

DType type_of(const Graph& graph, const Node& node, size_t output) {
  if (const auto* to = attr_if<int64_t>(node, "to"); node.op == "Cast" && to != nullptr) {
    return dtype_of_onnx(*to);
  }
  return result_type(graph, node, output);
}

}  // namespace

Target::Target() { graph_.format = "onnx"; }

void Target::begin(const std::string& name) { base_ = name; }

std::string Target::fresh() {
  for (;;) {
    std::string name = base_ + "/" + std::to_string(counters_[base_]++);
    if (!names_.contains(name)) return name;
  }
}

ValueId Target::add_value(const std::string& name) {
  const ValueId id = graph_.values.push_back({.name = name});
  names_[name] = id;
  return id;
}

void Target::rename(ValueId value, const std::string& name) {
  if (graph_.value(value).name == name) return;
  names_.erase(graph_.value(value).name);
  if (const auto other = names_.find(name); other != names_.end()) {
    const ValueId displaced = other->second;
    graph_.value(displaced).name = fresh();
    names_[graph_.value(displaced).name] = displaced;
  }
  graph_.value(value).name = name;
  names_[name] = value;
}

ValueId Target::input(const Value& source, const Shape& dims,
                      const std::vector<std::string>& symbols) {
  const ValueId id = add_value(source.name);
  Value& value = graph_.value(id);
  value.dtype = source.dtype;
  value.declared = dims;
  value.symbols = symbols;
  value.is_input = true;
  graph_.inputs.push_back(id);
  return id;
}

ValueId Target::weight(const Weight& weight, const std::string& name) {
  const ValueId id = add_value(name);
  graph_.value(id).dtype = weight.dtype;
  graph_.value(id).weight = graph_.weights.push_back(weight);
  graph_.weights.back().name = name;
  return id;
}

ValueId Target::tensor(const std::string& name, DType dtype, const Shape& dims,
                       std::vector<std::byte> bytes) {
  storage_.push_back(std::move(bytes));
  return weight({name, dtype, dims, storage_.back().data(), size_of(dtype)},
                names_.contains(name) ? fresh() : name);
}

ValueId Target::constant(const HostTensor& tensor) {
  const std::string raw = tensor_of("", tensor).raw_data();
  const auto* begin = reinterpret_cast<const std::byte*>(raw.data());
  return this->tensor(fresh(), tensor.dtype, tensor.dims, {begin, begin + raw.size()});
}

ValueId Target::number(double value, DType dtype) { return constant(HostTensor::of(value, dtype)); }

std::vector<ValueId> Target::emit_many(const std::string& op, const std::vector<ValueId>& inputs,
                                       size_t outputs, Attributes attributes) {
  Node node;
  node.op = op;
  node.opset = kExportOpset;
  node.attributes = std::move(attributes);
  node.inputs = inputs;
  while (!node.inputs.empty() && node.inputs.back() == kNone) node.inputs.pop_back();
  for (size_t i = 0; i < outputs; ++i) node.outputs.push_back(add_value(fresh()));
  node.name = graph_.value(node.outputs.front()).name;
  for (size_t i = 0; i < outputs; ++i) {
    graph_.value(node.outputs[i]).dtype = type_of(graph_, node, i);
  }
  std::vector<ValueId> results = node.outputs;
  graph_.nodes.push_back(std::move(node));
  return results;
}

ValueId Target::cast(ValueId value, DType type) {
  if (value == kNone || dtype(value) == type || type == DType::kUnknown) return value;
  if (is_weight(value) && weight_of(value).count() == 1) {
    const Weight& weight = weight_of(value);
    const HostTensor from = to_host(weight);
    const bool truth = from.number(0) != 0;
    HostTensor to = type == DType::kBool ? HostTensor::scalar(truth ? 1 : 0, type)
                                         : HostTensor::of(from.number(0), type);
    to.dims = weight.dims;
    return constant(to);
  }
  return emit("Cast", {value}, {{"to", int64_t{onnx_number(type)}}});
}

}  // namespace parsimony::onnx_io
