#include <algorithm>
#include <array>

#include "parsimony/configs/layer_names_impl.h"
#include "parsimony/configs/pattern_impl.h"

namespace parsimony {

namespace {

constexpr std::string_view kAllLayers = "default";

/// A word of a configuration and the operators that it means; rank 0 stands for every rank of the
/// weight.
struct Type {
  std::string_view name;
  std::string_view op;
  size_t rank;
};

constexpr std::array<Type, 44> kTypes = {{{"Attention", "Attention", 0},
                                          {"Conv", "Conv", 0},
                                          {"Conv", "ConvInteger", 0},
                                          {"Conv", "FusedConv", 0},
                                          {"Conv", "QLinearConv", 0},
                                          {"Conv1d", "Conv", 3},
                                          {"Conv1d", "FusedConv", 3},
                                          {"Conv2d", "Conv", 4},
                                          {"Conv2d", "ConvInteger", 4},
                                          {"Conv2d", "FusedConv", 4},
                                          {"Conv2d", "QLinearConv", 4},
                                          {"Conv3d", "Conv", 5},
                                          {"ConvTranspose", "ConvTranspose", 0},
                                          {"ConvTranspose1d", "ConvTranspose", 3},
                                          {"ConvTranspose2d", "ConvTranspose", 4},
                                          {"ConvTranspose3d", "ConvTranspose", 5},
                                          {"Einsum", "Einsum", 0},
                                          {"Embedding", "Gather", 0},
                                          {"GRU", "GRU", 0},
                                          {"GRU", "Gru", 0},
                                          {"Gather", "Gather", 0},
                                          {"Gemm", "FusedGemm", 0},
                                          {"Gemm", "Gemm", 0},
                                          {"Gemm", "QGemm", 0},
                                          {"LSTM", "LSTM", 0},
                                          {"LSTM", "Lstm", 0},
                                          {"Linear", "DynamicQuantizeMatMul", 0},
                                          {"Linear", "FusedGemm", 0},
                                          {"Linear", "FusedMatMul", 0},
                                          {"Linear", "Gemm", 0},
                                          {"Linear", "MatMul", 0},
                                          {"Linear", "MatMulInteger", 0},
                                          {"Linear", "MatMulIntegerToFloat", 0},
                                          {"Linear", "QGemm", 0},
                                          {"Linear", "QLinearMatMul", 0},
                                          {"MatMul", "DynamicQuantizeMatMul", 0},
                                          {"MatMul", "FusedMatMul", 0},
                                          {"MatMul", "MatMul", 0},
                                          {"MatMul", "MatMulInteger", 0},
                                          {"MatMul", "MatMulIntegerToFloat", 0},
                                          {"MatMul", "QLinearMatMul", 0},
                                          {"RNN", "RNN", 0},
                                          {"RNN", "Rnn", 0},
                                          {kAllLayers, "", 0}}};

/// Rank of a convolution's kernel, which may have another shape where the file stores it.
size_t kernel_rank(const Node& node, const Weight& stored) {
  for (const auto& [name, value] : node.attributes) {
    const auto* sizes = std::get_if<std::vector<int64_t>>(&value);
    if (name == "kernel_shape" && sizes != nullptr) return sizes->size() + 2;
  }
  return stored.dims.size();
}

void add(std::string name, std::vector<std::string>& names) {
  if (name.empty() || std::find(names.begin(), names.end(), name) != names.end()) return;
  names.push_back(std::move(name));
}

std::vector<std::string> names_of(const Graph& graph, const Layers& index, NodeId layer) {
  constexpr std::string_view kSuffix = ".weight";
  const Node& node = graph.node(layer);
  std::vector<std::string> names;
  add(node.name, names);
  add(key_of(graph, node), names);
  add(module_of_node_name(node.name), names);
  for (ValueId value : index.weights(layer)) {
    const std::string& weight = graph.weight(graph.value(value).weight).name;
    add(weight, names);
    if (weight.ends_with(kSuffix)) add(weight.substr(0, weight.size() - kSuffix.size()), names);
  }
  return names;
}

}  // namespace

std::string module_of_node_name(std::string_view name) {
  if (!name.starts_with('/')) return {};
  std::string path;
  std::string_view last;  // "layer1" is repeated within "layer1.0": a container has no call
  while (true) {
    name.remove_prefix(1);
    const size_t slash = name.find('/');
    if (slash == std::string_view::npos) return path;
    const std::string_view part = name.substr(0, slash);
    const bool repeats = !last.empty() && part.starts_with(last) && part.size() > last.size() &&
                         part[last.size()] == '.';
    if (!repeats && !path.empty()) path += '.';
    path += repeats ? part.substr(last.size()) : part;
    last = part;
    name.remove_prefix(slash);
  }
}

LayerNames::LayerNames(const Graph& graph) : graph_(graph), index_(graph) {
  for (const NodeId n : graph.nodes.ids()) {
    const auto layer = n;
    if (!index_.contains(layer)) continue;
    layers_.push_back(layer);
    names_.push_back(names_of(graph, index_, layer));
    for (const std::string& name : names_.back()) by_name_[name].push_back(layer);
  }
}

bool LayerNames::is_type(std::string_view type) {
  return std::any_of(kTypes.begin(), kTypes.end(),
                     [&](const Type& row) { return row.name == type; });
}

std::vector<std::string> LayerNames::types() {
  std::vector<std::string> result;
  for (const Type& row : kTypes) {
    if (result.empty() || result.back() != row.name) result.emplace_back(row.name);
  }
  return result;
}

bool LayerNames::has_type(NodeId layer, std::string_view type) const {
  const Node& node = graph_.node(layer);
  return std::any_of(kTypes.begin(), kTypes.end(), [&](const Type& row) {
    if (row.name != type || (!row.op.empty() && row.op != node.op)) return false;
    if (row.rank == 0) return true;
    const ValueId weight = index_.weights(layer).front();
    return row.rank == kernel_rank(node, graph_.weight(graph_.value(weight).weight));
  });
}

std::vector<NodeId> LayerNames::of_type(std::string_view type) const {
  std::vector<NodeId> result;
  std::copy_if(layers_.begin(), layers_.end(), std::back_inserter(result),
               [&](NodeId layer) { return has_type(layer, type); });
  return result;
}

std::vector<NodeId> LayerNames::of_name(const std::string& name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? std::vector<NodeId>() : found->second;
}

std::vector<NodeId> LayerNames::matching(const std::string& pattern, std::string_view place) const {
  const Pattern compiled(pattern, place);
  std::vector<NodeId> result;
  for (size_t i = 0; i < layers_.size(); ++i) {
    const auto matches = [&](const std::string& name) { return compiled.matches(name); };
    if (std::any_of(names_[i].begin(), names_[i].end(), matches)) result.push_back(layers_[i]);
  }
  return result;
}

std::vector<NodeId> LayerNames::containing(std::string_view part) const {
  std::vector<NodeId> result;
  for (size_t i = 0; i < layers_.size(); ++i) {
    const auto has_part = [&](const std::string& name) {
      return name.find(part) != std::string::npos;
    };
    if (std::any_of(names_[i].begin(), names_[i].end(), has_part)) result.push_back(layers_[i]);
  }
  return result;
}

std::vector<std::string> LayerNames::present_types() const {
  std::vector<std::string> result;
  for (NodeId layer : layers_) result.push_back(graph_.node(layer).op);
  std::sort(result.begin(), result.end());
  result.erase(std::unique(result.begin(), result.end()), result.end());
  return result;
}

std::vector<std::string> LayerNames::names() const {
  std::vector<std::string> result;
  for (const auto& names : names_) result.insert(result.end(), names.begin(), names.end());
  return result;
}

const Node* LayerNames::other_node(std::string_view name) const {
  const auto has_name = [&](const Node& node) {
    return node.name == name || key_of(graph_, node) == name;
  };
  const auto found = std::find_if(graph_.nodes.begin(), graph_.nodes.end(), has_name);
  return found == graph_.nodes.end() ? nullptr : &*found;
}

}  // namespace parsimony
