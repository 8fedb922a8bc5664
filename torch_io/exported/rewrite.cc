#include <torch/csrc/jit/passes/dead_code_elimination.h>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "parsimony/torch_io/errors.h"
#include "parsimony/torch_io/exported/draft_impl.h"
#include "parsimony/torch_io/exported/program_impl.h"
#include "parsimony/torch_io/script/origins_impl.h"

namespace parsimony::torch_io::exported {

namespace jit = torch::jit;

namespace {

constexpr std::string_view kSplit = "aten::split_with_sizes";

using Calls = std::map<size_t, jit::Node*>;  // by their steps

Calls calls_of(jit::Graph& graph) {
  Calls calls;
  script::for_each_node(*graph.block(), [&](jit::Node* node) {
    const auto step = step_of(*node);
    if (step && node->kind() != c10::prim::ListUnpack) calls.emplace(*step, node);
  });
  return calls;
}

void set_argument(Json& node, const std::string& name, Json value) {
  if (value.is_null()) {
    throw errors::cannot_rewrite(node["target"].get<std::string>(),
                                 "argument " + in_quotes(name) + " cannot represent its new value");
  }
  for (Json& input : node["inputs"]) {
    if (input["name"] != name) continue;
    input["arg"] = std::move(value);
    return;
  }
  constexpr int kKeyword = 2;
  Json input;
  input["name"] = name;
  input["arg"] = std::move(value);
  const Json& others = node["inputs"];
  if (!others.empty() && others[0].contains("kind")) input["kind"] = kKeyword;
  node["inputs"].push_back(std::move(input));
}

void update(Draft& draft, const Step& step, const jit::Node& before, const jit::Node& after) {
  Json& node = draft.at(step.place);
  const std::string graph = graph_of(step.place);
  if (before.kind() != after.kind()) {
    if (after.kind().toQualString() != kSplit) {
      throw errors::cannot_rewrite(node["target"].get<std::string>(), "its operator changes");
    }
    node["target"] = "torch.ops.aten.split_with_sizes.default";
    node["inputs"] = Json::array();
    size_t i = 0;
    for (const char* name : {"self", "split_sizes", "dim"}) {
      set_argument(node, name, draft.argument(*after.input(i++), graph));
    }
    return;
  }
  if (step.arguments.size() != after.inputs().size()) return;  // it has no changes
  for (size_t i = 0; i < step.arguments.size(); ++i) {
    Json now = draft.argument(*after.input(i), graph);
    if (now == draft.argument(*before.input(i), graph)) continue;
    set_argument(node, step.arguments[i], std::move(now));
  }
}

std::vector<jit::Value*> results_of(jit::Graph& graph) {
  jit::Value* result = graph.outputs().at(0);
  return result->node()->kind() == c10::prim::TupleConstruct ? result->node()->inputs().vec()
                                                             : std::vector<jit::Value*>{result};
}

/// Updates results that are read elsewhere since their call was removed.
void update_outputs(Draft& draft) {
  const auto before = results_of(*draft.program.module.get_method("forward").graph());
  const auto after = results_of(*draft.edited.graph);
  for (size_t i = 0; i < before.size() && i < after.size(); ++i) {
    const Json old = draft.named(*before[i], kTopGraph);
    const Json now = draft.named(*after[i], kTopGraph);
    if (old == now) continue;
    for (Json& output : draft.graph()["outputs"]) {
      if (output == old) output = now;
    }
    for (Json& spec : draft.json["graph_module"]["signature"]["output_specs"]) {
      Json& arg = spec.begin().value()["arg"];
      if (arg == old) arg = now;
      if (arg == old.begin().value()) arg = now.begin().value();
    }
  }
}

bool reads_any(const Json& node, const std::set<std::string>& names) {
  return std::ranges::any_of(node["inputs"], [&](const Json& input) {
    const Json& arg = input["arg"].begin().value();
    return arg.is_object() && arg.contains("name") &&
           names.contains(arg["name"].get<std::string>());
  });
}

std::set<size_t> steps_of(const Calls& calls) {
  std::set<size_t> steps;
  for (const auto& [step, call] : calls) steps.insert(step);
  return steps;
}

/// Returns the calls whose results are read.
std::set<size_t> read_steps(const jit::Graph& program) {
  const auto live = const_cast<jit::Graph&>(program).copy();
  jit::EliminateDeadCode(live);
  return steps_of(calls_of(*live));
}

/// Removes nodes of removed calls, and checks of their results. In subgraphs unread calls are kept.
void drop_nodes(Draft& draft, const Calls& before, const Calls& after) {
  const std::set<size_t> read = read_steps(*draft.program.module.get_method("forward").graph());
  std::set<std::string> removed;
  std::set<size_t> dropped;
  for (const auto& [step, call] : before) {
    if (after.contains(step)) continue;
    const auto& [place, arguments, outputs] = draft.program.steps[step];
    if (graph_of(place) != kTopGraph) {
      if (!read.contains(step)) continue;
      throw errors::cannot_rewrite(draft.at(place)["target"].get<std::string>(),
                                   "it would be removed from a subgraph");
    }
    dropped.insert(std::stoul(place.substr(place.rfind('/') + 1)));
    removed.insert(outputs.begin(), outputs.end());
  }
  if (dropped.empty()) return;
  Json left = Json::array();
  size_t i = 0;
  for (Json& node : draft.graph()["nodes"]) {
    const bool checks = node["outputs"].empty() && reads_any(node, removed);
    if (!dropped.contains(i++) && !checks) left.push_back(std::move(node));
  }
  draft.graph()["nodes"] = std::move(left);
  for (const std::string& name : removed) draft.graph()["tensor_values"].erase(name);
}

}  // namespace

void write_edited(const Archive& archive, const Program& program, const EditedScript& edited,
                  const jit::Module& small, const std::string& path) {
  const Calls before = calls_of(*program.module.get_method("forward").graph());
  // Unread nodes take no part in a plan: their weights would keep their sizes.
  jit::EliminateDeadCode(edited.graph);
  Draft draft(archive, program, edited, small);
  const Calls after = calls_of(*edited.graph);
  std::vector<NamedTensor> weights;
  std::vector<NamedTensor> constants;
  for (const NamedTensor& tensor : settle_tensors(draft)) {
    (archive.is_constant(tensor.name) ? constants : weights).push_back(tensor);
  }
  for (const auto& [step, call] : after) {
    update(draft, program.steps[step], *before.at(step), *call);
  }
  update_outputs(draft);
  settle_sizes(draft, after);
  drop_nodes(draft, before, after);
  archive.write(path, draft.json.dump(), weights, constants);
}

}  // namespace parsimony::torch_io::exported
