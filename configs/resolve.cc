// Resolves config entries to the layers of a network.
#include <re2/re2.h>

#include <algorithm>
#include <initializer_list>
#include <set>
#include <utility>

#include "parsimony/base/errors.h"
#include "parsimony/base/ranges.h"
#include "parsimony/configs/config.h"
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
    const std::string& weight = graph.weight_of(value).name;
    add(weight, names);
    if (weight.ends_with(kSuffix)) add(weight.substr(0, weight.size() - kSuffix.size()), names);
  }
  return names;
}

/// Does the whole name match? Takes no more steps than the product of the lengths.
bool is_like(std::string_view name, std::string_view pattern) {
  size_t at = 0;
  size_t next = 0;
  size_t after_star = std::string_view::npos;
  size_t resumed = 0;  // where the last star ends for now
  while (at < name.size()) {
    if (next < pattern.size() && pattern[next] == '*') {
      after_star = ++next;
      resumed = at;
    } else if (next < pattern.size() && (pattern[next] == '?' || pattern[next] == name[at])) {
      ++next;
      ++at;
    } else if (after_star != std::string_view::npos) {
      next = after_star;
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
  const size_t rank = kernel_rank(node, graph_.weight_of(weight));
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
    const std::function<bool(const std::string&)>& expected) const {
  std::vector<NodeId> result;
  for (size_t i = 0; i < layers_.size(); ++i) {
    if (std::any_of(names_[i].begin(), names_[i].end(), expected)) result.push_back(layers_[i]);
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
  sort_unique(result);
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

namespace {

ConfigError unknown_name(std::string_view place, std::string_view name,
                         std::span<const std::string> known) {
  return ConfigError(place, ": this network has no layer ", in_quotes(name), ".",
                     did_you_mean(name, known));
}

ConfigError unmatched(std::string_view place, std::string_view pattern) {
  return ConfigError(place, ": pattern ", in_quotes(pattern), " matches no layer of this network");
}

ConfigError not_a_layer(std::string_view place, std::string_view name, std::string_view op) {
  return ConfigError(place, ": ", in_quotes(name), " is a ", op,
                     ", which is not pruned by itself; name the layers around it");
}

using State = LayerSetting::State;
using Selection = IdVector<NodeId, bool>;

std::string place_of(const ConfigEntry& entry, std::string_view key, size_t index) {
  if (!entry.source.from_command_line) {
    return entry.source.place + '.' + std::string(key) + '[' + std::to_string(index) + ']';
  }
  return key == "op_types" ? "--op-types" : "--exclude";
}

/// Finds what one entry selects.
class Selector {
 public:
  Selector(const Graph& graph, const LayerNames& names, const ConfigEntry& entry)
      : graph_(graph), names_(names), entry_(entry) {}

  /// `notes` says which names were ignored.
  Selection included(std::vector<std::string>& notes) const {
    const bool any_name =
        entry_.op_names.empty() && entry_.op_names_re.empty() && entry_.op_partial_names.empty();
    Selection by_name(graph_.nodes.size(), any_name);
    add_known_names(by_name, notes);
    add_patterns(entry_.op_names_re, "op_names_re", by_name);
    add_partial_names(entry_.op_partial_names, "op_partial_names", by_name);
    Selection by_type(graph_.nodes.size(), entry_.op_types.empty());
    add_types(entry_.op_types, "op_types", by_type);
    Selection both(graph_.nodes.size());
    for (const NodeId layer : names_.layers()) both[layer] = by_name[layer] && by_type[layer];
    return both;
  }

  Selection excluded() const {
    Selection selection(graph_.nodes.size());
    add_types(entry_.exclude_op_types, "exclude_op_types", selection);
    add_names(entry_.exclude_op_names, "exclude_op_names", selection);
    add_patterns(entry_.exclude_op_names_re, "exclude_op_names_re", selection);
    return selection;
  }

 private:
  static void add(const std::vector<NodeId>& nodes, Selection& selection) {
    for (NodeId node : nodes) selection[node] = true;
  }

  void add_types(const std::vector<std::string>& types, std::string_view key,
                 Selection& selection) const {
    for (size_t i = 0; i < types.size(); ++i) {
      const std::string place = place_of(entry_, key, i);
      if (!LayerNames::is_type(types[i])) {
        const std::string hint = did_you_mean(types[i], LayerNames::types());
        throw ConfigError(
            place, ": unknown op type ", in_quotes(types[i]),
            hint.empty() ? "; known are " + each_of(LayerNames::types()) : "." + hint);
      }
      const std::vector<NodeId> found = names_.of_type(types[i]);
      if (found.empty()) {
        const std::vector<std::string> present = names_.present_types();
        throw ConfigError(place, ": this network has no layer of type ", in_quotes(types[i]),
                          present.empty() ? ", nor any other layer that can be pruned"
                                          : "; it has " + each_of(present));
      }
      add(found, selection);
    }
  }

  /// Names that must be there.
  void add_names(const std::vector<std::string>& names, std::string_view key,
                 Selection& selection) const {
    for (size_t i = 0; i < names.size(); ++i) {
      if (!add_name(names[i], selection)) throw unknown(names[i], place_of(entry_, key, i));
    }
  }

  /// NNI ignores unknown names. We do so, with a note, if another name of the list is known; names
  /// of excluded layers are never ignored.
  void add_known_names(Selection& selection, std::vector<std::string>& notes) const {
    if (entry_.exclude) return add_names(entry_.op_names, "op_names", selection);
    std::vector<ConfigError> missing;
    for (size_t i = 0; i < entry_.op_names.size(); ++i) {
      if (add_name(entry_.op_names[i], selection)) continue;
      missing.push_back(unknown(entry_.op_names[i], place_of(entry_, "op_names", i)));
    }
    if (!missing.empty() && missing.size() == entry_.op_names.size()) throw missing.front();
    for (const ConfigError& error : missing) {
      notes.push_back(std::string(error.what()) + " The name is ignored.");
    }
  }

  /// A name, or a pattern where no layer has that name. False if nothing is found.
  bool add_name(const std::string& name, Selection& selection) const {
    std::vector<NodeId> found = names_.of_name(name);
    if (found.empty() && LayerNames::is_pattern(name)) found = names_.like(name);
    add(found, selection);
    return !found.empty();
  }

  ConfigError unknown(const std::string& name, const std::string& place) const {
    if (const Node* node = names_.other_node(name); node != nullptr) {
      return not_a_layer(place, name, node->op);
    }
    if (LayerNames::is_pattern(name)) return unmatched(place, name);
    return unknown_name(place, name, names_.names());
  }

  void add_patterns(const std::vector<std::string>& patterns, std::string_view key,
                    Selection& selection) const {
    for (size_t i = 0; i < patterns.size(); ++i) {
      const std::string place = place_of(entry_, key, i);
      const std::vector<NodeId> found = names_.matching(patterns[i], place);
      if (found.empty()) throw unmatched(place, patterns[i]);
      add(found, selection);
    }
  }

  void add_partial_names(const std::vector<std::string>& parts, std::string_view key,
                         Selection& selection) const {
    for (size_t i = 0; i < parts.size(); ++i) {
      const std::vector<NodeId> found = names_.containing(parts[i]);
      if (found.empty()) {
        throw ConfigError(place_of(entry_, key, i), ": no layer has ", in_quotes(parts[i]),
                          " in its name");
      }
      add(found, selection);
    }
  }

  const Graph& graph_;
  const LayerNames& names_;
  const ConfigEntry& entry_;
};

/// The layer that an entry's layers follow.
NodeId leader_of(const Graph& graph, const LayerNames& names, const ConfigEntry& entry) {
  const std::string place = entry.source.place + ".align.module_name";
  const std::vector<NodeId> found = names.of_name(entry.aligned_with);
  if (found.empty()) {
    if (const Node* node = names.other_node(entry.aligned_with); node != nullptr) {
      throw not_a_layer(place, entry.aligned_with, node->op);
    }
    throw unknown_name(place, entry.aligned_with, names.names());
  }
  if (found.size() > 1) {
    throw ConfigError(place, ": several layers have the name \"", entry.aligned_with,
                      "\": ", label_of(graph, graph.node(found[0])), " and ",
                      label_of(graph, graph.node(found[1])));
  }
  return found.front();
}

using NameList = std::vector<std::string>;

bool any_given(std::initializer_list<const NameList*> lists) {
  return std::ranges::any_of(lists, [](const NameList* list) { return !list->empty(); });
}

/// Does the entry say which layers it is for?
bool includes_some(const ConfigEntry& entry) {
  return any_given({&entry.op_types, &entry.op_names, &entry.op_names_re, &entry.op_partial_names});
}

/// An entry that selects everything may meet a network that has no layers.
bool has_selector(const ConfigEntry& entry) {
  return includes_some(entry) ||
         any_given({&entry.exclude_op_types, &entry.exclude_op_names, &entry.exclude_op_names_re});
}

/// Request of the entry in `settings`; kNone for an entry that excludes.
int add_request(const ConfigEntry& entry, size_t index, Settings& settings) {
  if (entry.exclude) return kNone;
  settings.requests.push_back(entry.request);
  settings.requests.back().entry = static_cast<int>(index);
  return static_cast<int>(settings.requests.size()) - 1;
}

}  // namespace

Settings resolve(const ConfigList& config, const Graph& graph) {
  const LayerNames names(graph);
  Settings settings;
  settings.force = config.force;
  settings.layers.resize(graph.nodes.size());
  for (size_t i = 0; i < config.entries.size(); ++i) {
    const ConfigEntry& entry = config.entries[i];
    const Selector selector(graph, names, entry);
    const Selection included = selector.included(settings.notes);
    const Selection excluded = selector.excluded();
    const int request = add_request(entry, i, settings);
    if (!entry.aligned_with.empty()) {
      settings.requests.back().aligned_with = leader_of(graph, names, entry);
    }
    if (!includes_some(entry)) settings.elsewhere = request;
    bool selects = false;
    for (const NodeId n : names.layers()) {
      LayerSetting& setting = settings.layers[n];
      if (included[n] && !excluded[n]) {
        setting = {entry.exclude ? State::kExcluded : State::kPruned, request, static_cast<int>(i)};
        selects = true;
      } else if (excluded[n] && setting.state == State::kUnnamed) {
        setting = {State::kExcluded, kNone, static_cast<int>(i)};
      }
    }
    if (!selects && has_selector(entry)) {
      throw ConfigError(entry.source.place,
                        ": no layer is selected; types and names must hold for the same layer");
    }
  }
  return settings;
}

}  // namespace parsimony
