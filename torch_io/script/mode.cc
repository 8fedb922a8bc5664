#include "parsimony/torch_io/script/mode.h"

#include <torch/csrc/jit/ir/constants.h>
#include <torch/csrc/jit/ir/ir.h>

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <utility>

namespace parsimony::torch_io {
namespace {

namespace jit = torch::jit;

/// Which operand says whether one trains.
constexpr std::array<std::pair<std::string_view, size_t>, 5> kModal = {
    {{"aten::batch_norm", 5},
     {"aten::dropout", 1},
     {"aten::dropout_", 1},
     {"aten::feature_dropout", 1},
     {"aten::alpha_dropout", 1}}};

bool says_evaluation(const jit::Value& value) {
  const auto constant = jit::toIValue(&value);
  return constant && constant->isBool() && !constant->toBool();
}

bool follow_mode(jit::Graph& graph, jit::Block& block) {
  bool changed = false;
  for (jit::Node* node : block.nodes()) {
    for (jit::Block* inner : node->blocks()) changed |= follow_mode(graph, *inner);
    const std::string_view kind = node->kind().toQualString();
    const auto* modal = std::find_if(kModal.begin(), kModal.end(),
                                     [&](const auto& known) { return known.first == kind; });
    if (modal == kModal.end() || !says_evaluation(*node->input(modal->second))) continue;
    const jit::WithInsertPoint before(node);
    jit::Node* mode = graph.insertNode(graph.createGetAttr(graph.inputs().at(0), "training"));
    node->replaceInput(modal->second, mode->output());
    changed = true;
  }
  return changed;
}

}  // namespace

std::vector<std::string> follow_mode(const jit::Module& module) {
  std::vector<std::string> names;
  std::set<const jit::Graph*> changed;  // modules of one class share theirs
  for (const auto& [name, part] : module.named_modules()) {
    if (!part.hasattr("training")) continue;
    bool concerned = false;
    for (const jit::Method& method : part.get_methods()) {
      jit::Graph& graph = *method.graph();
      if (follow_mode(graph, *graph.block())) changed.insert(&graph);
      concerned = concerned || changed.count(&graph) > 0;
    }
    if (concerned) names.push_back(name);
  }
  return names;
}

}  // namespace parsimony::torch_io
