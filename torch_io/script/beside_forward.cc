#include <algorithm>
#include <unordered_set>

#include "parsimony/torch_io/script/beside_forward_impl.h"
#include "parsimony/torch_io/script/interpreter_impl.h"

namespace parsimony::torch_io::script {

namespace jit = torch::jit;

namespace {

using Functions = std::unordered_set<const jit::Function*>;

void add_callees(const jit::Block& block, Functions& called);

void add(jit::Function* function, Functions& called) {
  if (function == nullptr || !called.insert(function).second || !function->isGraphFunction())
    return;
  add_callees(*jit::toGraphFunction(*function).graph()->block(), called);
}

void add_callees(const jit::Block& block, Functions& called) {
  for (const jit::Node* node : block.nodes()) {
    if (node->kind() == c10::prim::CallMethod) {
      const auto type = node->input(0)->type()->cast<c10::ClassType>();
      if (type) add(type->findMethod(node->s(c10::attr::name)), called);
    }
    for (const jit::Block* inner : node->blocks()) add_callees(*inner, called);
  }
}

bool is_made_of_mode(const jit::Value& value, std::unordered_set<const jit::Value*>& seen) {
  if (!seen.insert(&value).second) return false;
  const jit::Node& node = *value.node();
  if (node.kind() == c10::prim::GetAttr) return node.s(c10::attr::name) == "training";
  const auto is_made = [&](const jit::Value* part) {
    return part->type()->kind() == c10::TypeKind::BoolType && is_made_of_mode(*part, seen);
  };
  if (std::any_of(node.inputs().begin(), node.inputs().end(), is_made)) return true;
  if (node.kind() != c10::prim::If) return false;
  return std::any_of(node.blocks().begin(), node.blocks().end(), [&](const jit::Block* block) {
    return is_made(block->outputs()[value.offset()]);
  });
}

}  // namespace

std::vector<std::string> uncalled_methods(const jit::Module& module) {
  Functions called;
  for (const jit::Module& part : module.modules()) {
    if (const auto forward = part.find_method("forward")) add(&forward->function(), called);
  }
  std::vector<std::string> names;
  for (const auto& [path, part] : module.named_modules()) {
    for (const jit::Method& method : part.get_methods()) {
      const std::string& name = method.name();
      if (name.starts_with("__") || called.contains(&method.function())) continue;
      add(&method.function(), called);
      names.push_back(path.empty() ? name : path + "." + name);
    }
  }
  return names;
}

bool is_made_of_mode(const jit::Value& condition) {
  std::unordered_set<const jit::Value*> seen;
  return is_made_of_mode(condition, seen);
}

/// A branch that only training takes, as that of an auxiliary classifier. If it has layers of its
/// own, which nobody cuts, what they read stays whole. Others follow what evaluation does: they
/// drop elements, or count batches.
void Interpreter::keep_for_training(jit::Block& block) {
  std::vector<ValueId> values;
  if (!collect_for_training(block, values)) return;
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  for (const ValueId value : values) {
    graph_.whole.emplace_back(value, "a branch for training has layers of its own that read it");
  }
}

/// Tensors from outside that the block reads. Are there matrices or kernels that nothing else has
/// read so far?
bool Interpreter::collect_for_training(jit::Block& block, std::vector<ValueId>& values) {
  bool own_layers = false;
  for (jit::Node* node : block.nodes()) {
    if (node->kind() != c10::prim::GetAttr || !of_input(node, 0).is(Kind::kObject)) {
      for (const jit::Value* input : node->inputs()) collect_tensors(of(input), values);
    } else {
      const Object& owner = *of_input(node, 0).object;
      const std::string& name = node->s(c10::attr::name);
      const c10::IValue held = owner.object->getAttr(name);
      if (held.isObject()) get_attribute(node);
      if (held.isTensor() && held.toTensor().defined()) {
        const std::string path = owner.path.empty() ? name : owner.path + "." + name;
        const ValueId known = tensors_.known(held.toTensor(), path);
        if (known != kNone) values.push_back(known);
        own_layers = own_layers || (known == kNone && held.toTensor().dim() > 1);
      }
    }
    for (jit::Block* inner : node->blocks()) own_layers |= collect_for_training(*inner, values);
  }
  for (const jit::Value* output : block.outputs()) collect_tensors(of(output), values);
  return own_layers;
}

}  // namespace parsimony::torch_io::script
