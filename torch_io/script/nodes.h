#pragma once

#include <torch/csrc/jit/ir/ir.h>

namespace parsimony::torch_io::script {

/// Visits the nodes of a block in their order, each before those of its own blocks.
template <typename Visit>
void for_each_node(torch::jit::Block& block, const Visit& visit) {
  for (torch::jit::Node* node : block.nodes()) {
    visit(node);
    for (torch::jit::Block* inner : node->blocks()) for_each_node(*inner, visit);
  }
}

}  // namespace parsimony::torch_io::script
