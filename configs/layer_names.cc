#include <re2/re2.h>

#include <algorithm>
#include <set>
#include <utility>

#include "parsimony/base/errors.h"
#include "parsimony/configs/layer_names_impl.h"
#include "parsimony/graph/attributes.h"
#include "parsimony/graph/graph.h"
#include "parsimony/graph/operators/schema.h"

namespace parsimony {

namespace {

constexpr std::string_view kAllLayers = "default";

bool convolves(const Linear& linear) {
  return linear.kind == LinearKind::kConvolution ||
         linear.kind == LinearKind::kTransposedConvolution;
}

/// The configuration keywords for layers of such a row; for convolutions, those of every rank.
std::vector<std::string> words_for(const Linear& linear) {
  std::vector<std::string> words = {std::string(linear.layer)};
  if (linear.kind == LinearKind::kMatrixProduct) words.emplace_back("Linear");
  if (linear.kind == LinearKind::kLookup) words.emplace_back("Embedding");
  for (const char* rank : {"1d", "2d", "3d"}) {
    if (convolves(linear)) words.push_back(words.front() + rank);
  }
  return words;
}

/// Rank of a convolution's kernel, which may have another shape where the file stores it.
size_t kernel_rank(const Node& node, const Weight& stored) {
  const auto* sizes = attr_if<std::vector<int64_t>>(node, "kernel_shape");
  return sizes == nullptr ? stored.dims.size() : sizes->size() + 2;
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

/// Does the whole name match? Takes no more steps than the product of the lengths.
bool is_like(std::string_view name, std::string_view pattern) {
  size_t at = 0;
  size_t next = 0;
  size_t behind_star = std::string_view::npos;
  size_t resumed = 0;  // where the last star ends for now
  while (at < name.size()) {
    if (next < pattern.size() && pattern[next] == '*') {
      behind_star = ++next;
      resumed = at;
    } else if (next < pattern.size() && (pattern[next] == '?' || pattern[next] == name[at])) {
      ++next;
      ++at;
    } else if (behind_star != std::string_view::npos) {
      next = behind_star;
      at = ++resumed;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', next) == std::string_view::npos;
}

}  // namespace

LayerNames::LayerNames(const Graph& graph) : graph_(graph), index_(graph) {
  for (const NodeId n : graph.nodes.ids()) {
    if (!index_.contains(n)) continue;
    layers_.push_back(n);
    names_.push_back(names_of(graph, index_, n));
    for (const std::string& name : names_.back()) by_name_[name].push_back(n);
  }
}

bool LayerNames::is_type(std::string_view type) {
  const std::vector<std::string> all = types();
  return std::find(all.begin(), all.end(), type) != all.end();
}

std::vector<std::string> LayerNames::types() {
  std::set<std::string> words;
  for (const OpSchema& schema : operator_table()) {
    if (schema.linear.kind == LinearKind::kNotLinear) continue;
    for (std::string& word : words_for(schema.linear)) words.insert(std::move(word));
  }
  std::vector<std::string> result(words.begin(), words.end());
  result.emplace_back(kAllLayers);
  return result;
}

bool LayerNames::has_type(NodeId layer, std::string_view type) const {
  if (type == kAllLayers) return true;
  const Node& node = graph_.node(layer);
  const Linear& linear = schema_of(node).linear;
  const std::vector<std::string> words = words_for(linear);
  if (std::find(words.begin(), words.end(), type) == words.end()) return false;
  if (!convolves(linear) || type == linear.layer) return true;
  const ValueId weight = index_.weights(layer).front();
  const size_t rank = kernel_rank(node, graph_.weight(graph_.value(weight).weight));
  return type == std::string(linear.layer) + std::to_string(rank - 2) + "d";
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

bool LayerNames::is_pattern(std::string_view text) {
  return text.find_first_of("*?") != std::string_view::npos;
}

std::vector<NodeId> LayerNames::like(std::string_view pattern) const {
  return with_name([&](const std::string& name) { return is_like(name, pattern); });
}

std::vector<NodeId> LayerNames::with_name(
    const std::function<bool(const std::string&)>& wanted) const {
  std::vector<NodeId> result;
  for (size_t i = 0; i < layers_.size(); ++i) {
    if (std::any_of(names_[i].begin(), names_[i].end(), wanted)) result.push_back(layers_[i]);
  }
  return result;
}

std::vector<NodeId> LayerNames::matching(const std::string& pattern, std::string_view place) const {
  // Patterns come from untrusted files: RE2 takes linear time and bounded memory.
  const RE2 compiled(pattern, RE2::Quiet);
  if (!compiled.ok()) {
    constexpr size_t kMostShown = 40;
    const bool whole = pattern.size() <= kMostShown;
    throw ConfigError(place, ": pattern ",
                      in_quotes(whole ? pattern : pattern.substr(0, kMostShown) + "…"), ": ",
                      compiled.error());
  }
  return with_name([&](const std::string& name) {
    return compiled.Match(name, 0, name.size(), RE2::ANCHOR_START, nullptr, 0);
  });
}

std::vector<NodeId> LayerNames::containing(std::string_view part) const {
  return with_name([&](const std::string& name) { return name.find(part) != std::string::npos; });
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
