// What stands in the module: attributes and constants.
#include <torch/csrc/jit/ir/constants.h>

#include "parsimony/torch_io/script/interpreter_impl.h"

namespace parsimony::torch_io::script {

namespace jit = torch::jit;

namespace {

void collect_written(const jit::Block& block, std::unordered_set<std::string>& names) {
  for (const jit::Node* node : block.nodes()) {
    if (node->kind() == c10::prim::SetAttr) names.insert(node->s(c10::attr::name));
    for (const jit::Block* inner : node->blocks()) collect_written(*inner, names);
  }
}

bool holds_tensors(const Binding& binding) {
  if (!binding.is(Kind::kList)) return binding.is(Kind::kTensor);
  for (const Binding& item : *binding.items) {
    if (holds_tensors(item)) return true;
  }
  return false;
}

}  // namespace

/// Attributes that some method writes are state: what they hold now says little.
void Interpreter::find_written_attributes() {
  collect_written(*origins_.graph->block(), written_names_);
  for (const jit::Method& method : origins_.module.get_methods()) {
    collect_written(*method.graph()->block(), written_names_);
  }
}

Binding Interpreter::from_ivalue(const c10::IValue& value, const std::string& path) {
  if (value.isNone()) return Binding::none();
  if (value.isBool()) return Binding::of_bool(value.toBool());
  if (value.isInt()) return Binding::of_int(value.toInt());
  if (value.isDouble()) return Binding::of_float(value.toDouble());
  if (value.isString()) return Binding::of_text(value.toStringRef());
  if (value.isTensor()) return tensors_.attribute(value.toTensor(), path);
  if (value.isObject()) {
    Binding binding{.kind = Kind::kObject};
    binding.object = std::make_shared<Object>(Object{value.toObject(), path});
    return binding;
  }
  std::vector<Binding> items;
  const auto add = [&](const c10::IValue& item) {
    items.push_back(from_ivalue(item, path + "." + std::to_string(items.size())));
  };
  if (value.isTuple()) {
    for (const c10::IValue& item : value.toTupleRef().elements()) add(item);
    return Binding::list(std::move(items));
  }
  if (value.isList()) {
    for (const c10::IValue& item : value.toListRef()) add(item);
    return Binding::list(std::move(items));
  }
  return {};
}

Binding Interpreter::attribute(const Object& owner, const std::string& name) {
  const std::string path = owner.path.empty() ? name : owner.path + "." + name;
  const auto written = written_.find(path);
  if (written != written_.end()) return written->second;
  if (name == "training") return Binding::of_bool(false);
  const Binding binding = from_ivalue(owner.object->getAttr(name), path);
  if (!written_names_.contains(name) || binding.is(Kind::kObject)) return binding;
  if (!holds_tensors(binding)) return {};
  std::vector<ValueId> values;
  collect_tensors(binding, values);
  builder_.pin("SetAttr", values);
  return binding;
}

void Interpreter::get_attribute(jit::Node* node) {
  const Binding owner = of_input(node, 0);
  if (!owner.is(Kind::kObject)) return opaque(node);
  bindings_[node->output()] = attribute(*owner.object, node->s(c10::attr::name));
}

void Interpreter::constant(jit::Node* node) {
  const std::optional<c10::IValue> value = [&]() -> std::optional<c10::IValue> {
    if (node->output()->type()->kind() == c10::TypeKind::FunctionType) return std::nullopt;
    if (auto held = jit::toIValue(node->output())) return std::move(*held);
    return std::nullopt;
  }();
  if (!value) return;
  if (value->isTensor()) {
    bindings_[node->output()] = tensors_.constant(node, value->toTensor());
  } else {
    bindings_[node->output()] = from_ivalue(*value, node->output()->debugName());
  }
}

}  // namespace parsimony::torch_io::script
