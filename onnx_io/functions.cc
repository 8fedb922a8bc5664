#include <google/protobuf/unknown_field_set.h>

#include <algorithm>

#include "parsimony/onnx_io/model_file_impl.h"
#include "parsimony/onnx_io/node_impl.h"

namespace parsimony::onnx_io {
namespace {

constexpr int kDeepest = 64;               // of calls within calls
constexpr int64_t kMostNodes = 1'000'000;  // that all calls may unroll to

/// Visits the default values of a function's attributes. libonnx has the field since 1.13; later
/// its messages are "lite", without access to unknown fields.
template <typename Function, typename Visit>
void for_each_default(const Function& function, const Visit& visit) {
  if constexpr (requires { function.attribute_proto(); }) {
    for (const auto& attribute : function.attribute_proto()) visit(attribute);
  } else {
    constexpr int kDefaultAttributes = 11;
    const auto& unknown = function.unknown_fields();
    for (int i = 0; i < unknown.field_count(); ++i) {
      const auto& field = unknown.field(i);
      if (field.number() != kDefaultAttributes ||
          field.type() != google::protobuf::UnknownField::TYPE_LENGTH_DELIMITED) {
        continue;
      }
      onnx::AttributeProto attribute;
      if (attribute.ParseFromString(field.length_delimited())) visit(attribute);
    }
  }
}

}  // namespace

Functions::Functions(const onnx::ModelProto& model) : model_(model) {
  for (int f = 0; f < model.functions_size(); ++f) {
    const onnx::FunctionProto& function = model.functions(f);
    const auto name = std::pair(canonical_domain(function.domain()), function.name());
    const auto [known, fresh] = by_name_.emplace(name, f);
    if (!fresh) known->second = -1;
  }
  calls_.assign(model.functions_size(), 0);
  if (!calls_.empty() && !count(model.graph().node(), 0)) by_name_.clear();
}

/// Returns false if the calls are recursive or too many.
bool Functions::count(const Nodes& nodes, int depth) {
  nodes_ += nodes.size();
  if (depth > kDeepest || nodes_ > kMostNodes) return false;
  for (const onnx::NodeProto& node : nodes) {
    bool fine = true;
    for_each_body(node, [&](const std::string&, const onnx::GraphProto& body) {
      fine = fine && count(body.node(), depth + 1);
    });
    const int function = called_by(node);
    if (function >= 0 && fine) {
      ++calls_[function];
      fine = count(model_.functions(function).node(), depth + 1);
    }
    if (!fine) return false;
  }
  return true;
}

int Functions::called_by(const onnx::NodeProto& node) const {
  if (by_name_.empty() || key_of(node).empty()) return -1;
  const auto found = by_name_.find({canonical_domain(node.domain()), node.op_type()});
  return found == by_name_.end() ? -1 : found->second;
}

CallAttributes attributes_of(const onnx::NodeProto& call, const onnx::FunctionProto& function) {
  CallAttributes result;
  for (const auto& attribute : call.attribute()) result[attribute.name()] = attribute;
  for_each_default(function, [&](const onnx::AttributeProto& attribute) {
    result.try_emplace(attribute.name(), attribute);
  });
  return result;
}

bool refers(const onnx::NodeProto& node) {
  return std::ranges::any_of(
      node.attribute(), [](const auto& attribute) { return !attribute.ref_attr_name().empty(); });
}

onnx::NodeProto substituted(const onnx::NodeProto& node, const CallAttributes& attributes) {
  onnx::NodeProto result = node;
  result.clear_attribute();
  for (const auto& attribute : node.attribute()) {
    if (attribute.ref_attr_name().empty()) {
      *result.add_attribute() = attribute;
      continue;
    }
    const auto given = attributes.find(attribute.ref_attr_name());
    if (given == attributes.end()) continue;
    onnx::AttributeProto& added = *result.add_attribute();
    added = given->second;
    added.set_name(attribute.name());
  }
  return result;
}

std::string inside_call(const onnx::NodeProto& call) { return inside(call, call.op_type()); }

}  // namespace parsimony::onnx_io
