#include "parsimony/torch_io/script/read.h"

#include <torch/csrc/jit/passes/inliner.h>

#include <algorithm>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>

#include "parsimony/base/ranges.h"
#include "parsimony/graph/operators/factor.h"
#include "parsimony/graph/operators/node_view.h"
#include "parsimony/graph/weights.h"
#include "parsimony/torch_io/errors.h"
#include "parsimony/torch_io/reason.h"
#include "parsimony/torch_io/script/editor.h"
#include "parsimony/torch_io/script/interpreter_impl.h"

namespace parsimony::torch_io {

namespace jit = torch::jit;

namespace {

std::vector<std::string> notes_of(const jit::Module& module) {
  std::vector<std::string> notes;
  for (const std::string& method : script::uncalled_methods(module)) {
    notes.push_back("method \"" + method +
                    "\" is not analysed, since forward does not call it: it may not run after "
                    "pruning");
  }
  return notes;
}

/// Returns the inputs with the types found by analysis.
std::vector<InputSpec> typed(std::vector<InputSpec> inputs, const Graph& graph) {
  for (size_t i = 0; i < inputs.size() && i < graph.inputs.size(); ++i) {
    inputs[i].dtype = graph.value(graph.inputs[i]).dtype;
  }
  return inputs;
}

/// Reads into an empty result, whose origins have module and graph. @returns unmeasured values
std::vector<jit::Value*> follow(ScriptGraph& result, const std::vector<InputSpec>& inputs,
                                script::Measurements measured, Computed computed) {
  script::Interpreter interpreter(result.graph, *result.origins, std::move(measured),
                                  computed == Computed::kAreWeights);
  interpreter.run(inputs);
  result.results = interpreter.result_names();
  result.numbers = interpreter.result_numbers();
  return interpreter.unmeasured();
}

/// Tries the changes in order on a temporary editor.
std::vector<NodeId> unwritable(const ScriptGraph& script, const std::vector<Patch>& patches) {
  ScriptEditor trial(script);
  std::vector<NodeId> nodes = trial.refused(patches);
  for (const Patch& patch : patches) {
    const std::string& key = key_of(script.graph, script.graph.node(patch.node));
    if (!trial.can_write(key)) nodes.push_back(patch.node);
  }
  sort_unique(nodes);
  return nodes;
}

/// Returns a copy of types, graphs and structure, which shares the tensors. libtorch copies methods
/// before some of the modules that they take as arguments: the types of these are still the
/// original's.
jit::Module cloned(const jit::Module& module) {
  jit::Module copy = module.clone(/*inplace=*/true);
  std::unordered_map<c10::TypePtr, c10::TypePtr> types;
  const auto parts = copy.modules();
  auto part = parts.begin();
  for (const jit::Module& original : module.modules()) {
    types.emplace(original.type(), (*part).type());
    ++part;
  }
  const auto remapped = [&](const c10::TypePtr& type) {
    const auto found = types.find(type);
    return found == types.end() ? type : found->second;
  };
  for (const auto& [from, to] : types) {
    for (jit::Function* method : to->expectRef<c10::ClassType>().methods()) {
      if (!method->isGraphFunction()) continue;
      jit::toGraphFunction(*method).graph()->remapTypes(remapped);
      method->setSchema(method->getSchema().cloneWithRemappedTypes(remapped));
    }
  }
  return copy;
}

ScriptGraph begun(const jit::Module& module, const std::shared_ptr<jit::Graph>& graph) {
  ScriptGraph result;
  result.origins = std::make_shared<script::Origins>();
  result.origins->module = module;
  result.origins->graph = graph;
  return result;
}

ScriptGraph read(const jit::Module& module, const std::vector<InputSpec>& inputs,
                 Computed computed) {
  const std::shared_ptr<jit::Graph> graph = module.get_method("forward").graph();
  jit::Inline(*graph);
  ScriptGraph result = begun(module, graph);
  const std::vector<jit::Value*> unmeasured = follow(result, inputs, {}, computed);
  if (unmeasured.empty()) return result;
  script::Measurements measured =
      script::measure(module, graph, unmeasured, typed(inputs, result.graph));
  if (measured.empty()) return result;
  result = begun(module, graph);
  follow(result, inputs, std::move(measured), computed);
  return result;
}

/// The program as a source of the Graph: some numbers cannot be edited; parameters are known.
class ScriptSource final : public ParameterSource {
 public:
  explicit ScriptSource(std::shared_ptr<script::Origins> origins) : origins_(std::move(origins)) {}

  std::vector<NodeId> unwritable(const Graph& graph,
                                 const std::vector<Patch>& patches) const override {
    return torch_io::unwritable({graph, origins_, {}, 0}, patches);
  }

  bool can_bypass(const Graph& /*graph*/, NodeId /*sum*/, int /*kept*/) const override {
    return false;
  }

  std::vector<std::string> parameters() const override {
    std::vector<std::string> names;
    for (const auto& parameter : origins_->module.named_parameters()) {
      names.push_back(parameter.name);
    }
    return names;
  }

 private:
  std::shared_ptr<script::Origins> origins_;
};

}  // namespace

ScriptGraph read_script(const jit::Module& module, const std::vector<InputSpec>& inputs,
                        Computed computed) {
  if (!module.find_method("forward")) throw errors::no_forward();
  try {
    const jit::Module own = cloned(module);
    std::vector<std::string> notes = notes_of(own);  // before calls are inlined
    ScriptGraph result = read(own, inputs, computed);
    result.graph.notes = std::move(notes);
    result.graph.source = std::make_shared<ScriptSource>(result.origins);
    return result;
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {  // libtorch has several kinds
    throw ModelError("the module cannot be read: ", first_line(error));
  }
}

bool is_computed(const ScriptGraph& script, const std::string& weight) {
  const auto origin = script.origins->tensor_origins.find(weight);
  return origin != script.origins->tensor_origins.end() && origin->second.computed != nullptr;
}

bool is_synthetic(const ScriptGraph& script, const std::string& weight) {
  return script.origins->synthetic.contains(weight);
}

}  // namespace parsimony::torch_io
