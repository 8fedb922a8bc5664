#include "parsimony/graph/weight_kind.h"

#include <algorithm>
#include <array>

namespace parsimony {
namespace {

constexpr std::array<std::string_view, 4> kReaders = {"DequantizeLinear", "QGemm", "QLinearConv",
                                                      "QuantizeLinear"};

bool is_quantised(const Graph& graph, const Use& use) {
  const Node& node = graph.node(use.node);
  return (node.domain.empty() || node.domain == "com.microsoft") &&
         std::find(kReaders.begin(), kReaders.end(), node.op) != kReaders.end();
}

}  // namespace

bool is_weight(const Graph& graph, const Value& value) {
  if (value.weight == kNone) return false;
  const DType type = graph.weight(value.weight).dtype;
  if (is_floating(type) || type == DType::kInt8 || type == DType::kUInt8) return true;
  const bool wide = type == DType::kInt32 || type == DType::kInt16 || type == DType::kUInt16;
  return wide && !value.uses.empty() &&
         std::all_of(value.uses.begin(), value.uses.end(),
                     [&](const Use& use) { return is_quantised(graph, use); });
}

}  // namespace parsimony
