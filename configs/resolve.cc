// Resolves config entries to the layers of a network.
#include <algorithm>

#include "parsimony/base/errors.h"
#include "parsimony/configs/config.h"
#include "parsimony/configs/layer_names_impl.h"

namespace parsimony {

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
  if (!entry.from_command_line) {
    return entry.place + '.' + std::string(key) + '[' + std::to_string(index) + ']';
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
  const std::string place = entry.place + ".align.module_name";
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

/// An entry that selects everything may meet a network that has no layers.
bool has_selector(const ConfigEntry& entry) {
  const auto lists = {&entry.op_types,           &entry.op_names,         &entry.op_names_re,
                      &entry.op_partial_names,   &entry.exclude_op_types, &entry.exclude_op_names,
                      &entry.exclude_op_names_re};
  return std::any_of(lists.begin(), lists.end(), [](const auto* list) { return !list->empty(); });
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
      throw ConfigError(entry.place,
                        ": no layer is selected; types and names must hold for the same layer");
    }
  }
  return settings;
}

}  // namespace parsimony
