#include "parsimony/cli/explain_config.h"

#include <algorithm>

#include "parsimony/masks/coupling.h"
#include "parsimony/pruners/units.h"
#include "parsimony/report/text.h"

namespace parsimony::cli {
namespace {

using Json = nlohmann::ordered_json;
using State = LayerSetting::State;

constexpr size_t kMostGroups = 4;

/// The effective keys, as in a config list; defaults are omitted, except the criterion and how much
/// to prune.
Json setting_of(const Graph& graph, const Request& request) {
  Json setting = Json::object();
  if (request.aligned_with != kNone) {
    setting["align"] = label_of(graph, graph.node(request.aligned_with));
    return setting;
  }
  if (request.amount || !request.also.empty()) {
    Json& limits = setting["budget"] = Json::object();
    const auto add = [&](Budget budget, std::optional<double> amount, double ratio) {
      Json& limit = limits[std::string(name_of(budget))];
      limit = amount ? Json(*amount) : Json(formatted("%g", 100 * (1 - ratio)) + "%");
    };
    add(request.budget, request.amount, request.ratio);
    for (const Limit& limit : request.also) add(limit.budget, limit.amount, limit.ratio);
  } else if (request.threshold) {
    setting["sparse_threshold"] = *request.threshold;
  } else {
    setting["sparse_ratio"] = request.ratio;
    if (request.budget != Budget::kChannels) setting["budget"] = name_of(request.budget);
  }
  setting["criterion"] = request.criterion;
  if (request.scope != Scope::kLocal) setting["scope"] = name_of(request.scope);
  if (request.in_channels) setting["granularity"] = "in_channel";
  if (request.granularity) setting["granularity"] = name_of(*request.granularity);
  const Request usual;
  const auto add = [&](const char* key, auto value, auto by_default) {
    if (value != by_default) setting[key] = value;
  };
  add("min_sparse_ratio", request.min_ratio, usual.min_ratio);
  add("max_sparse_ratio", request.max_ratio, usual.max_ratio);
  add("keep_at_least", request.keep_at_least, usual.keep_at_least);
  add("round_to", request.round_to, usual.round_to);
  if (request.target) setting["round_to"] = name_of(*request.target);
  add("internal_metric_block", request.metric_blocks, usual.metric_blocks);
  const auto add_id = [&](const char* key, const std::string& id) {
    if (!id.empty()) setting[key] = Json::parse(id);
  };
  add_id("global_group_id", request.global_group);
  add_id("dependency_group_id", request.dependency_group);
  return setting;
}

std::string state_of(const LayerSetting& setting) {
  if (setting.state == State::kPruned) return "pruned";
  return setting.state == State::kExcluded ? "excluded" : "not named";
}

/// Of "cnn.json: config_list[2]" only the part after the file.
std::string short_place(const std::string& place) {
  const size_t colon = place.rfind(": ");
  return colon == std::string::npos ? place : place.substr(colon + 2);
}

std::string text_of(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_object()) return value.dump();
  return value.begin().key() + " " + value.begin().value().dump();
}

std::string text_of(const LayerRow& row) {
  if (row.state != "pruned") return row.state;
  std::string text;
  for (const auto& [key, value] : row.setting.items()) {
    text += (text.empty() ? "" : ", ") + key + " " + text_of(value);
  }
  return text;
}

}  // namespace

ConfigExplanation explain_config(const Graph& graph, const Analysis& analysis,
                                 const ConfigList& config, const PruneOptions& options) {
  const Settings settings = resolve(config, graph);
  const Coupling coupling =
      couple(graph, analysis.facts, coupling_options(config, settings, options));
  const Layers layers(graph);
  IdVector<NodeId, std::vector<std::string>> groups_of(graph.nodes.size());
  for (const Group& group : coupling.groups) {
    for (const NodeId layer : layers_of(graph, layers, group, Role::kOut)) {
      groups_of[layer].push_back(group.id);
    }
  }
  ConfigExplanation result;
  for (const NodeId n : graph.nodes.ids()) {
    if (!layers.contains(n)) continue;
    const LayerSetting& layer = settings.layers[n];
    LayerRow row{label_of(graph, graph.nodes[n]),
                 graph.nodes[n].op,
                 std::move(groups_of[n]),
                 state_of(layer),
                 Json::object(),
                 {}};
    if (layer.state == State::kPruned) {
      row.setting = setting_of(graph, settings.requests[layer.request]);
    }
    if (layer.entry != kNone) {
      row.entry = short_place(config.entries[layer.entry].place);
    }
    result.layers.push_back(std::move(row));
  }
  result.notes = settings.notes;
  Followed followed = follow(graph, layers, coupling, settings);
  tie(graph, layers, coupling, settings, followed);
  for (const Conflict& conflict : followed.conflicts) {
    result.notes.push_back("group " + coupling.groups[conflict.group].id + ": " + conflict.reason);
  }
  return result;
}

std::string to_text(const ConfigExplanation& explanation) {
  using Align = Table::Align;
  Table table({"layer", "type", "groups", "setting", "from"},
              {Align::kLeft, Align::kLeft, Align::kLeft, Align::kLeft, Align::kLeft});
  for (const LayerRow& row : explanation.layers) {
    table.add({printable(row.layer), printable(row.op),
               row.groups.empty() ? "-" : listed(row.groups, kMostGroups), printable(text_of(row)),
               row.entry.empty() ? "-" : printable(row.entry)});
  }
  std::string text = table.text();
  for (const std::string& note : explanation.notes) text += "note: " + printable(note) + "\n";
  return text;
}

std::string to_json(const ConfigExplanation& explanation) {
  Json layers = Json::array();
  for (const LayerRow& row : explanation.layers) {
    layers.push_back({{"layer", row.layer},
                      {"op", row.op},
                      {"groups", row.groups},
                      {"state", row.state},
                      {"setting", row.setting},
                      {"entry", row.entry.empty() ? Json(nullptr) : Json(row.entry)}});
  }
  const Json document = {
      {"parsimony_explain", 1}, {"layers", std::move(layers)}, {"notes", explanation.notes}};
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace parsimony::cli
