// x.add_(y): from here on x is the sum, for whoever holds it. If a view of x is still in use, the
// two stay whole.
#include "parsimony/torch_io/script/interpreter_impl.h"

namespace parsimony::torch_io::script {

namespace jit = torch::jit;

namespace {

bool is_read_after(const jit::Value* value, const jit::Node* node) {
  for (const jit::Use& use : value->uses()) {
    if (use.user != node && !use.user->isBefore(node)) return true;
  }
  return false;
}

void rename(Binding& binding, ValueId from, ValueId to) {
  if (binding.is(Kind::kTensor) && binding.value == from) binding.value = to;
  if (!binding.is(Kind::kList)) return;
  for (Binding& item : *binding.items) rename(item, from, to);
}

}  // namespace

void Interpreter::pin_aliases(const std::string& op, ValueId value) {
  const ValueId root = builder_.root(value);
  std::vector<ValueId> values;
  for (ValueId v = 0; v < static_cast<ValueId>(graph_.values.size()); ++v) {
    if (builder_.root(v) == root) values.push_back(v);
  }
  builder_.pin(op, values);
}

void Interpreter::write_to(jit::Node* node, ValueId result) {
  const ValueId value = of_input(node, 0).value;
  const ValueId root = builder_.root(value);
  bool others = graph_.value(root).weight != kNone || loops_ > 0;
  std::vector<ValueId> held;
  for (const auto& [name, binding] : bindings_) {
    held.clear();
    collect_tensors(binding, held);
    for (const ValueId other : held) {
      const bool view = other != value && builder_.root(other) == root;
      others = others || (view && is_read_after(name, node));
    }
  }
  if (others) {
    const std::string op = node->kind().toUnqualString();
    pin_aliases(op, value);
    builder_.pin(op, {result});
  }
  for (auto& [name, binding] : bindings_) rename(binding, value, result);
}

}  // namespace parsimony::torch_io::script
