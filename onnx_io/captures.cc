#include <algorithm>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "parsimony/onnx_io/captures_impl.h"

namespace parsimony::onnx_io {
namespace {

using Scope = std::unordered_set<std::string_view>;
using Visit = std::function<void(const std::string&)>;

Scope definitions(const onnx::GraphProto& graph) {
  Scope names;
  for (const auto& input : graph.input()) names.insert(input.name());
  for (const auto& tensor : graph.initializer()) names.insert(tensor.name());
  for (const auto& sparse : graph.sparse_initializer()) names.insert(sparse.values().name());
  for (const auto& node : graph.node()) names.insert(node.output().begin(), node.output().end());
  return names;
}

class Walk {
 public:
  explicit Walk(const Visit& visit) : visit_(visit) {}

  void node(const onnx::NodeProto& node) {
    for (const auto& attribute : node.attribute()) {
      if (attribute.has_g()) subgraph(attribute.g());
      for (const auto& graph : attribute.graphs()) subgraph(graph);
    }
  }

 private:
  void subgraph(const onnx::GraphProto& graph) {
    scopes_.push_back(definitions(graph));
    for (const auto& inner : graph.node()) {
      for (const std::string& name : inner.input()) read(name);
      node(inner);
    }
    for (const auto& output : graph.output()) read(output.name());
    scopes_.pop_back();
  }

  void read(const std::string& name) {
    if (name.empty()) return;
    const bool inside = std::any_of(scopes_.begin(), scopes_.end(),
                                    [&](const Scope& scope) { return scope.contains(name); });
    if (!inside) visit_(name);
  }

  const Visit& visit_;
  std::vector<Scope> scopes_;
};

}  // namespace

void for_each_capture(const onnx::NodeProto& node, const Visit& visit) { Walk(visit).node(node); }

}  // namespace parsimony::onnx_io
