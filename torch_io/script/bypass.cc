// y = x + f(x) becomes y = x:
//
//     %y = aten::add(%f, %x, %1)      uses of %y read %x; the call goes, then what only %f needed
//     %y = aten::add_(%f, %x, %1)     and so do uses of %f after the call, for %f is the sum there
#include <torch/csrc/jit/ir/ir.h>
#include <torch/csrc/jit/passes/dead_code_elimination.h>
#include <torch/csrc/jit/runtime/graph_iterator.h>

#include <memory>
#include <unordered_set>

#include "parsimony/torch_io/script/edits_impl.h"

namespace parsimony::torch_io::script {

namespace jit = torch::jit;

void bypass(Edits& edits, const Origins& origins) {
  if (edits.bypasses.empty()) return;
  for (const auto& [node, input] : edits.bypasses) {
    jit::Value* kept = node->input(input);
    jit::Value* written = node->input(0);
    const bool in_place = std::string(node->kind().toUnqualString()) != "add";
    if (in_place && written != kept) written->replaceAllUsesAfterNodeWith(node, kept);
    node->output()->replaceAllUsesWith(kept);
    node->destroy();
  }
  jit::EliminateDeadCode(origins.graph);
  std::unordered_set<const jit::Node*> left;
  std::shared_ptr<jit::Graph> graph = origins.graph;
  jit::DepthFirstGraphNodeIterator nodes(graph);
  for (const jit::Node* node = nodes.next(); node != nullptr; node = nodes.next()) {
    left.insert(node);
  }
  for (const auto& [name, origin] : origins.tensor_origins) {
    if (origin.constant != nullptr && !left.contains(origin.constant)) edits.gone.insert(name);
  }
}

}  // namespace parsimony::torch_io::script
