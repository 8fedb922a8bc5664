#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "parsimony/api/depth.h"
#include "parsimony/api/engine_services.h"
#include "parsimony/api/prune.h"
#include "parsimony/base/files.h"
#include "parsimony/cli/command.h"
#include "parsimony/cli/model.h"
#include "parsimony/cli/options.h"
#include "parsimony/cli/outputs.h"
#include "parsimony/cli/pretrained.h"
#include "parsimony/cli/prune_options.h"
#include "parsimony/cli/terminal.h"
#include "parsimony/masks/coupling.h"
#include "parsimony/pruners/units.h"
#include "parsimony/report/explain.h"
#include "parsimony/report/speedup.h"
#include "parsimony/report/text.h"

namespace parsimony::cli {
namespace {

/// The resolved setting of one layer.
struct LayerRow {
  std::string layer;
  std::string op;
  std::vector<std::string> groups;  ///< whose channels the layer produces
  std::string state;                ///< "pruned", "excluded" or "not named"
  nlohmann::ordered_json setting;   ///< effective keys of the config list; empty if not pruned
  std::string entry;                ///< "config_list[2]"; empty if none names it
};

struct ConfigExplanation {
  std::vector<LayerRow> layers;    ///< in graph order
  std::vector<std::string> notes;  ///< groups that deviate from some of their layers' settings
};

using Json = nlohmann::ordered_json;
using State = LayerSetting::State;

constexpr size_t kMostGroups = 4;

/// Returns the effective keys, as in a config list; defaults are omitted, except the criterion and
/// the amount.
Json setting_of(const Graph& graph, const Request& request) {
  if (request.aligned_with != kNone) {
    return {{"align", label_of(graph, graph.node(request.aligned_with))}};
  }
  return Json::parse(to_json(request));
}

std::string state_of(const LayerSetting& setting) {
  if (setting.state == State::kPruned) return "pruned";
  return setting.state == State::kExcluded ? "excluded" : "not named";
}

/// Returns "config_list[2]" of "cnn.json: config_list[2]".
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

/// Solves the coupling again with the configuration's options. @throws like resolve()
ConfigExplanation explain_config(const Graph& graph, const Analysis& analysis,
                                 const PruneRequest& request) {
  const ConfigList& config = request.config;
  const Settings settings = resolve(config, graph);
  const Coupling coupling = couple(graph, analysis.facts, coupling_options(request, settings));
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
      row.entry = short_place(config.entries[layer.entry].source.place);
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

/// Renders a table, followed by the notes.
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

/// Returns {"parsimony_explain": 1, "layers": […], "notes": […]}.
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

struct ExplainOptions {
  std::string model;
  PruneCommandOptions prune;  ///< shown on the page: the config or shorthand options
  ExplainFilter filter;
  std::string dot;
  std::string html;
  std::vector<std::string> inputs;
  bool json = false;
  bool blocks = false;
};

/// Returns a request with the settings that the coupling depends on.
PruneRequest coupling_request(const ExplainOptions& options) {
  PruneRequest result;
  result.interface = options.prune.prune.interface;
  result.granularity = options.prune.prune.granularity;
  return result;
}

/// Prints the settings of every layer.
void print_config(const ExplainOptions& options, const AnalysedModel& model, ConfigList config) {
  PruneRequest request = coupling_request(options);
  request.config = std::move(config);
  const ConfigExplanation explanation = explain_config(model.graph(), model.analysis, request);
  print(options.json ? to_json(explanation) : to_text(explanation));
}

/// Prints the blocks that `prune --layers` could remove.
void print_blocks(const ExplainOptions& options, const AnalysedModel& model) {
  const Analysis& analysis = model.analysis;
  DepthReport report;
  report.blocks =
      describe(model.graph(), analysis.sample, residual_blocks(model.graph(), analysis.facts));
  print(options.json ? blocks_json(report) : blocks_text(report));
}

/// Writes the page of the network, with the channels that `prune` would remove if an amount is set.
void write_page(const ExplainOptions& options, const AnalysedModel& model, bool quiet) {
  if (!asks_for_pruning(options.prune)) {
    return write_network_page(options.html, options.model, model.graph(), model.analysis);
  }
  PruneRequest request = prune_request_of(options.prune, config_of(options.prune));
  Graph& graph = model.model->graph();
  if (has_choice(request.config)) {
    throw ConfigError("explain: shows what one criterion removes; name one, and one scope");
  }
  request.inputs = input_specs(options.inputs, graph);
  Progress progress({}, !quiet);
  PruneServices shown;
  shown.progress = [&](std::string_view stage) { progress.begin(std::string(stage)); };
  EngineServices services(request, graph, shown);
  const Pruning pruning = plan_pruning(graph, request, services);
  services.save();
  progress.finish();
  write_network_page(options.html, options.model, graph, pruning.analysis,
                     decision_of(pruning, asked_text(options.prune), false));
}

void run(ExplainOptions& options, const Session& session) {
  hand_over_pretrained("explain", options.model, session);
  const std::string& config_file = options.prune.config;
  const std::vector<NamedFile> outputs = {{"--dot", options.dot}, {"--html", options.html}};
  check_outputs(outputs, {{kModel, options.model}, {"--config", config_file}});
  enter_sandbox(session.limits, outputs, options.prune.prune.calibration.uses_device());
  ConfigList config = config_file.empty() ? ConfigList() : read_config(config_file);
  const AnalysedModel model =
      read_and_analyse(options.model, options.inputs, coupling_request(options), session.quiet);
  check_outputs_beside(outputs, {}, *model.model);
  if (options.blocks) return print_blocks(options, model);
  const Coupling& coupling = model.analysis.coupling;
  options.filter.all = session.verbosity > 0;
  const Explanation explanation =
      explain(model.graph(), model.analysis.facts, coupling, options.filter);
  if (!options.dot.empty())
    write_file(options.dot, to_dot(model.graph(), model.analysis.facts, coupling));
  if (!options.html.empty()) write_page(options, model, session.quiet);
  if (!config_file.empty()) return print_config(options, model, std::move(config));
  print(options.json ? to_json(explanation) : to_text(explanation, options.filter.all));
}

void add_options(CLI::App& command, ExplainOptions& options) {
  add_model_argument(command, options.model);
  CLI::Option* node =
      add_option(command, "--node", options.filter.node, "NAME",
                 "Print only this node: its name, its output or one of its weights");
  add_option(command, "--group", options.filter.group, "ID", "Only this group")->excludes(node);
  add_option(command, "--config", options.prune.config, "CFG.json",
             "Print the settings that this config list resolves to instead, by layer and entry");
  command.add_flag("--blocks", options.blocks,
                   "Print instead the residual blocks that prune --layers could remove");
  add_option(command, "--dot", options.dot, "F.dot", "Write the network as a picture for Graphviz");
  CLI::Option* html = add_option(command, "--html", options.html, "F.html",
                                 "Write an HTML page of the network; with --config or the options "
                                 "below it also shows what prune would remove");
  command.add_flag("--json", options.json, "Print one JSON object instead of text");
  add_setting(command, setting(cut_settings(), "granularity"), options.prune.prune);
  add_input_option(command, options.inputs);
  add_settings(command, interface_settings(), options.prune.prune.interface);
  add_shorthand(command, options.prune, "Preview of prune for --html");
  for (CLI::Option* option : options.prune.shorthand_options) option->needs(html);
  add_settings(command, calibration_settings(), options.prune.prune.calibration);
  for (const char* name : {"--calibration", "--samples", "--mean", "--std"}) {
    command.get_option(name)->needs(html);
  }
}

}  // namespace

void add_explain(CLI::App& app, Session& session) {
  add_command<ExplainOptions>(app, session, "explain",
                              "Explains which channels are coupled, and what cannot shrink and why",
                              "parsimony explain resnet.onnx --html resnet.html --ratio 0.5",
                              add_options, run);
}

}  // namespace parsimony::cli
