#include "parsimony/pruners/layers.h"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>

#include "parsimony/masks/magnitude.h"

namespace parsimony {

namespace {

/// Bounds the search through computed weights; real ones are a few nodes deep.
constexpr size_t kMaxNodes = 64;

struct Operator {
  std::string_view op;
  int first_weight;
  int last_weight;
  int projection = kNone;  ///< one more that stands apart
};

constexpr std::array<Operator, 23> kOperators = {{{"Attention", 1, 1},
                                                  {"Conv", 1, 1},
                                                  {"ConvInteger", 1, 1},
                                                  {"ConvTranspose", 1, 1},
                                                  {"DynamicQuantizeMatMul", 0, 1},
                                                  {"Einsum", 0, 1},
                                                  {"FusedConv", 1, 1},
                                                  {"FusedGemm", 0, 1},
                                                  {"FusedMatMul", 0, 1},
                                                  {"GRU", 1, 2},
                                                  {"Gather", 0, 0},
                                                  {"Gemm", 0, 1},
                                                  {"Gru", 1, 2},
                                                  {"LSTM", 1, 2},
                                                  {"Lstm", 1, 2, 7},
                                                  {"MatMul", 0, 1},
                                                  {"MatMulInteger", 0, 1},
                                                  {"MatMulIntegerToFloat", 0, 1},
                                                  {"QGemm", 3, 3},
                                                  {"QLinearConv", 3, 3},
                                                  {"QLinearMatMul", 3, 3},
                                                  {"RNN", 1, 2},
                                                  {"Rnn", 1, 2}}};

const Operator* find_operator(const Node& node) {
  constexpr std::array<std::string_view, 3> kDomains = {"", "com.microsoft", "torch"};
  if (std::find(kDomains.begin(), kDomains.end(), node.domain) == kDomains.end()) return nullptr;
  const auto fits = [&](const Operator& row) { return row.op == node.op; };
  const auto* row = std::find_if(kOperators.begin(), kOperators.end(), fits);
  return row == kOperators.end() ? nullptr : row;
}

bool is_matrix(const Weight& weight) {
  return weight.dims.size() >= 2 && has_magnitude(weight.dtype);
}

}  // namespace

Layers::Layers(const Graph& graph)
    : graph_(graph), constant_(graph.values.size()), is_layer_(graph.nodes.size()) {
  for (const ValueId v : graph.values.ids()) {
    constant_[v] = graph.values[v].weight != kNone;
  }
  for (const NodeId n : graph.nodes.ids()) {
    const Node& node = graph.nodes[n];
    if (is_constant(node)) {
      for (ValueId output : node.outputs) {
        if (output != kNone) constant_[output] = true;
      }
    } else {
      is_layer_[n] = !weights(n).empty();
    }
  }
}

bool Layers::is_constant(const Node& node) const {
  const auto is_known = [&](ValueId v) { return v == kNone || constant_[v]; };
  if (node.inputs.empty() || node.has_subgraph) return false;
  // Where a weight is taken apart may depend on sizes.
  if (node.op == "Split" || node.op == "Slice") return is_known(node.inputs.front());
  return std::all_of(node.inputs.begin(), node.inputs.end(), is_known);
}

std::vector<ValueId> Layers::weights(NodeId layer) const {
  const Node& node = graph_.node(layer);
  const Operator* row = find_operator(node);
  if (row == nullptr) return {};
  std::vector<ValueId> open;
  for (int i = row->first_weight; i <= row->last_weight; ++i) {
    if (i < static_cast<int>(node.inputs.size()))
      open.push_back(node.inputs[static_cast<size_t>(i)]);
  }
  if (row->projection != kNone && row->projection < static_cast<int>(node.inputs.size())) {
    open.push_back(node.inputs[static_cast<size_t>(row->projection)]);
  }
  std::vector<ValueId> found;
  std::set<ValueId> seen;
  for (size_t i = 0; i < open.size() && seen.size() < kMaxNodes; ++i) {
    if (open[i] == kNone || !constant_[open[i]]) continue;
    if (!seen.insert(open[i]).second) continue;
    const Value& value = graph_.value(open[i]);
    if (value.weight != kNone) {
      if (is_matrix(graph_.weight(value.weight))) found.push_back(open[i]);
    } else if (value.producer != kNone) {
      const auto& inputs = graph_.node(value.producer).inputs;
      open.insert(open.end(), inputs.begin(), inputs.end());
    }
  }
  return found;
}

std::vector<NodeId> Layers::using_weight_of(NodeId reader) const {
  std::vector<NodeId> open = {reader};
  std::vector<NodeId> found;
  std::set<NodeId> seen;
  for (size_t i = 0; i < open.size() && seen.size() < kMaxNodes; ++i) {
    if (!seen.insert(open[i]).second) continue;
    if (contains(open[i])) {
      found.push_back(open[i]);
      continue;
    }
    for (ValueId output : graph_.node(open[i]).outputs) {
      if (output == kNone || !constant_[output]) continue;
      for (const Use& use : graph_.value(output).uses) open.push_back(use.node);
    }
  }
  return found;
}

}  // namespace parsimony
