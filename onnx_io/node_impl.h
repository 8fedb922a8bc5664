// Small helpers for the nodes, attributes, constants and types of a model.
#pragma once

#include <google/protobuf/repeated_field.h>
#include <onnx/onnx_pb.h>

#include <array>
#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "parsimony/graph/graph.h"
#include "parsimony/onnx_io/external_data.h"

namespace parsimony::onnx_io {

/// Returns "" for "ai.onnx": the two are the same.
std::string canonical_domain(const std::string& domain);

/// Returns whether the node is this operator of ai.onnx.
bool is_standard(const onnx::NodeProto& node, std::string_view op);

/// Returns whether the node is an Identity with one input and one output.
bool is_identity(const onnx::NodeProto& node);

/// Returns the first non-empty output, by which plans refer to the node; "" if there is none.
const std::string& key_of(const onnx::NodeProto& node);

/// Returns the name, or the key if there is no name.
const std::string& label_of(const onnx::NodeProto& node);

/// Returns "y::then_branch::", the prefix of names that the graph in this attribute defines.
std::string inside(const onnx::NodeProto& node, const std::string& attribute);

/// Calls `visit(attribute, graph)` for each graph in the node's attributes; those in a list are
/// named "attribute[0]". `Proto` is a NodeProto, const or not.
template <typename Proto, typename Visit>
void for_each_body(Proto& node, Visit visit) {
  using Graph =
      std::conditional_t<std::is_const_v<Proto>, const onnx::GraphProto, onnx::GraphProto>;
  const auto found = [&](const std::string& name, const onnx::GraphProto& graph) {
    visit(name, const_cast<Graph&>(graph));  // as const as the node
  };
  for (const onnx::AttributeProto& attribute : node.attribute()) {
    if (attribute.has_g()) found(attribute.name(), attribute.g());
    for (int g = 0; g < attribute.graphs_size(); ++g) {
      found(attribute.name() + "[" + std::to_string(g) + "]", attribute.graphs(g));
    }
  }
}

/// Sets element type, dims and symbols of the value as declared in the file; -1 for symbolic dims.
void declare(const onnx::ValueInfoProto& info, Value& value);

/// Storage for numbers that have no stable address in a message.
using Scalars = std::deque<std::array<std::byte, 8>>;

/// Returns the index of the attribute with the constant; -1 if there is none.
int value_attribute(const onnx::NodeProto& node);

/// Returns a view of value_int, value_ints, value_float or value_floats. Empty for strings and
/// sparse tensors, and for `value`, which is a tensor.
std::optional<Weight> list_constant(const onnx::AttributeProto& attribute, Scalars& scalars);

/// Removes the elements for which `gone` is true and keeps the order of the others.
template <typename T, typename Predicate>
void remove_if(google::protobuf::RepeatedPtrField<T>& list, Predicate removed) {
  int kept = 0;
  for (int i = 0; i < list.size(); ++i) {
    if (removed(list.Get(i))) continue;
    if (kept != i) list.SwapElements(kept, i);  // swaps pointers: those of others stay valid
    ++kept;
  }
  list.DeleteSubrange(kept, list.size() - kept);
}

/// Fills `attributes` and `has_subgraph` of `to`. A small tensor attribute NAME becomes its list of
/// integers or floats under NAME and its element type ("float32") under "NAME.dtype"; large
/// tensors, string tensors and types are skipped.
void read_attributes(const onnx::NodeProto& from, ExternalData& external, Node& to);

}  // namespace parsimony::onnx_io
