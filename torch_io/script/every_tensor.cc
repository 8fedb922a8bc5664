#include <ATen/core/Tensor.h>
#include <torch/csrc/jit/ir/constants.h>
#include <torch/csrc/jit/ir/ir.h>

#include "parsimony/torch_io/script/every_tensor_impl.h"

namespace parsimony::torch_io::script {
namespace {

namespace jit = torch::jit;

using Visit = std::function<void(const at::Tensor&)>;

void visit_value(const c10::IValue& value, const Visit& visit) {
  value.visit([&](const c10::IValue& part) {
    if (part.isTensor()) visit(part.toTensor());
    return false;
  });
}

void visit_block(const jit::Block& block, const Visit& visit) {
  for (const jit::Node* node : block.nodes()) {
    if (node->kind() == c10::prim::Constant) {
      if (const auto constant = jit::toIValue(node->output())) visit_value(*constant, visit);
    }
    for (const jit::Block* inner : node->blocks()) visit_block(*inner, visit);
  }
}

}  // namespace

void for_each_tensor(const jit::Module& module, const Visit& visit) {
  visit_value(module._ivalue(), visit);
  for (jit::Function* function : module._ivalue()->compilation_unit()->get_functions()) {
    if (!function->isGraphFunction()) continue;
    visit_block(*jit::toGraphFunction(*function).graph()->block(), visit);
  }
}

}  // namespace parsimony::torch_io::script
