// Initializers without a reader: calibrations that a quantiser leaves behind.
#include <absl/container/flat_hash_set.h>

#include <algorithm>
#include <string_view>

#include "parsimony/onnx_io/node_impl.h"
#include "parsimony/onnx_io/reader_impl.h"

namespace parsimony::onnx_io {
namespace {

constexpr size_t kMostNames = 3;

using Names = absl::flat_hash_set<std::string_view>;

void add_reads(const onnx::GraphProto& graph, Names& names) {
  for (const auto& output : graph.output()) names.insert(output.name());
  for (const onnx::NodeProto& node : graph.node()) {
    names.insert(node.input().begin(), node.input().end());
    for_each_body(
        node, [&](const std::string&, const onnx::GraphProto& body) { add_reads(body, names); });
  }
}

}  // namespace

std::optional<std::string> note_on_unread(const onnx::GraphProto& graph, const Graph& linked) {
  const bool all_read = std::ranges::none_of(linked.values, [](const Value& value) {
    return value.producer == kNone && !value.is_input && value.uses.empty();
  });
  if (all_read) return std::nullopt;
  Names read;
  add_reads(graph, read);
  std::vector<std::string> unread;
  for (const onnx::TensorProto& tensor : graph.initializer()) {
    if (!read.contains(tensor.name())) unread.push_back('"' + tensor.name() + '"');
  }
  if (unread.empty()) return std::nullopt;
  std::string names = unread.front();
  for (size_t i = 1; i < std::min(unread.size(), kMostNames); ++i) names += ", " + unread[i];
  if (unread.size() > kMostNames) names += ", …";
  const bool one = unread.size() == 1;
  return "no node reads " +
         (one ? "initializer" : std::to_string(unread.size()) + " initializers") + " " + names +
         (one ? ", which stays as it is" : ", which stay as they are");
}

}  // namespace parsimony::onnx_io
