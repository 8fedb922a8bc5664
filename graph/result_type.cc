#include "parsimony/graph/result_type.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace parsimony {
namespace {

constexpr auto kConditions =
    std::to_array<std::string_view>({"And", "Equal", "Greater", "GreaterOrEqual", "IsInf", "IsNaN",
                                     "Less", "LessOrEqual", "Not", "Or", "Xor"});
constexpr auto kPlaces =
    std::to_array<std::string_view>({"ArgMax", "ArgMin", "NonZero", "Shape", "Size"});
/// Their second result says where the first was found.
constexpr auto kFinders = std::to_array<std::string_view>({"MaxPool", "TopK"});

template <typename Names>
bool among(const Names& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

DType result_type(const Graph& graph, const Node& node, size_t output) {
  if (among(kConditions, node.op)) return DType::kBool;
  if (among(kPlaces, node.op) || (output == 1 && among(kFinders, node.op))) return DType::kInt64;
  for (size_t i = node.op == "Where" ? 1 : 0; i < node.inputs.size(); ++i) {
    if (node.inputs[i] != kNone) return graph.value(node.inputs[i]).dtype;
  }
  return DType::kUnknown;
}

}  // namespace parsimony
