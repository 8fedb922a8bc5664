// Values: attributes of modules and constants; lists and dictionaries.
#include <ATen/ATen.h>
#include <torch/csrc/jit/ir/constants.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "parsimony/torch_io/script/interpreter_impl.h"
#include "parsimony/torch_io/tensor.h"

namespace parsimony::torch_io::script {

namespace jit = torch::jit;

namespace {

/// Whether its elements are contiguous or can be copied to be.
bool is_plain(const at::Tensor& tensor) {
  return tensor.defined() && tensor.layout() == at::kStrided && !tensor.is_quantized() &&
         !tensor.is_meta() &&
         dtype_of(c10::toRealValueType(tensor.scalar_type())) != DType::kUnknown;
}

}  // namespace

Tensors::Tensors(Builder& builder, Origins& origins) : builder_(builder), origins_(origins) {
  const jit::Module& module = origins.module;
  for (const auto& attribute : module.named_attributes(/*recurse=*/true)) {
    if (!attribute.value.isTensor()) continue;
    builder_.reserve(attribute.name);
    names_.emplace(key_of(attribute.value.toTensor(), attribute.name), attribute.name);
  }
}

std::string Tensors::key_of(const at::Tensor& tensor, const std::string& path) const {
  if (!is_plain(tensor) || tensor.numel() == 0) return path;
  const auto at = reinterpret_cast<uintptr_t>(tensor.data_ptr());
  return std::to_string(at) + to_string(tensor.sizes().vec()) + to_string(tensor.strides().vec());
}

Binding Tensors::define(const at::Tensor& tensor, const std::string& name, jit::Node* constant) {
  if (!is_plain(tensor)) {  // quantised, sparse: elements unknown
    builder_.begin(name);
    return Binding::tensor(builder_.emit_opaque("tensor", {}, 1, false).front());
  }
  at::Tensor dense = tensor.detach().cpu().contiguous();
  if (dense.is_complex()) dense = at::view_as_real(dense.resolve_conj());
  origins_.tensor_origins[name] = {dense, tensor, constant};
  if (constant != nullptr) origins_.literals.insert(name);
  const ValueId value = builder_.weight(view_of(name, dense));
  if (tensor.is_complex()) builder_.set_complex(value);
  return Binding::tensor(value);
}

Binding Tensors::attribute(const at::Tensor& tensor, const std::string& path) {
  if (!tensor.defined()) return Binding::none();
  const std::string key = key_of(tensor, path);
  const auto known = bindings_.find(key);
  if (known != bindings_.end()) return known->second;
  const auto name = names_.find(key);
  return bindings_[key] = define(tensor, name == names_.end() ? path : name->second, nullptr);
}

Binding Tensors::computed(jit::Value* value, const at::Tensor& tensor) {
  const std::string name = builder_.unused_name();
  const at::Tensor own = tensor.detach().cpu().clone(at::MemoryFormat::Contiguous);
  origins_.tensor_origins[name] = {.tensor = own, .source = own, .computed = value};
  return Binding::tensor(builder_.weight(view_of(name, own)));
}

ValueId Tensors::known(const at::Tensor& tensor, const std::string& path) const {
  const auto found = bindings_.find(key_of(tensor, path));
  return found == bindings_.end() ? kNone : found->second.value;
}

Binding Tensors::constant(jit::Node* node, const at::Tensor& tensor) {
  const auto known = constants_.find(node);
  if (known != constants_.end()) return known->second;
  const std::string name = "constant_" + std::to_string(constants_.size());
  return constants_[node] = define(tensor, name, node);
}

namespace {

void collect_written(const jit::Block& block, std::unordered_set<std::string>& names) {
  for (const jit::Node* node : block.nodes()) {
    if (node->kind() == c10::prim::SetAttr) names.insert(node->s(c10::attr::name));
    for (const jit::Block* inner : node->blocks()) collect_written(*inner, names);
  }
}

}  // namespace

/// Finds attributes that some method writes: they are state, so current values are not constants.
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
    Binding binding{.kind = BindingKind::kObject};
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
  Binding binding = from_ivalue(owner.object->getAttr(name), path);
  if (!written_names_.contains(name) || binding.is(BindingKind::kObject)) return binding;
  std::vector<ValueId> values;
  collect_tensors(binding, values);
  if (values.empty()) return {};
  builder_.pin("SetAttr", values);
  return binding;
}

void Interpreter::get_attribute(jit::Node* node) {
  const Binding owner = of_input(node, 0);
  if (!owner.is(BindingKind::kObject)) return opaque(node);
  Binding held = attribute(*owner.object, node->s(c10::attr::name));
  if (held.is(BindingKind::kTensor)) held.value = builder_.now(held.value);
  bindings_[node->output()] = std::move(held);
}

void Interpreter::constant(jit::Node* node) {
  if (node->output()->type()->kind() == c10::TypeKind::FunctionType) return;
  const auto value = jit::toIValue(node->output());
  if (!value) return;
  bindings_[node->output()] = value->isTensor() ? tensors_.constant(node, value->toTensor())
                                                : from_ivalue(*value, node->output()->debugName());
}

namespace {

constexpr auto kChanging =
    std::to_array<std::string_view>({"Delete", "_set_item", "add_", "append", "clear", "extend",
                                     "insert", "pop", "remove", "reverse", "sort"});

/// Returns empty if the index is unknown or out of range.
std::optional<size_t> position(const Binding& index, size_t size) {
  if (!index.is(BindingKind::kInt)) return std::nullopt;
  const int64_t at = index.integer < 0 ? index.integer + static_cast<int64_t>(size) : index.integer;
  if (at < 0 || at >= static_cast<int64_t>(size)) return std::nullopt;
  return at;
}

/// items[start:end:step]
std::optional<std::vector<Binding>> slice_of(const std::vector<Binding>& items,
                                             const Binding& start, const Binding& end,
                                             const Binding& step) {
  const int64_t size = std::ssize(items);
  const auto limit = [&](const Binding& at, int64_t fallback) {
    if (at.is(BindingKind::kNone)) return fallback;
    return std::clamp<int64_t>(at.integer < 0 ? at.integer + size : at.integer, 0, size);
  };
  const auto fixed = [](const Binding& at) {
    return at.is(BindingKind::kNone) || at.is(BindingKind::kInt);
  };
  const bool all = start.is(BindingKind::kNone) && end.is(BindingKind::kNone);
  if (all && step.is(BindingKind::kInt) && step.integer == -1) {
    return std::vector<Binding>(items.rbegin(), items.rend());
  }
  if (!fixed(start) || !fixed(end) || !step.is(BindingKind::kInt) || step.integer < 1) {
    return std::nullopt;
  }
  std::vector<Binding> part;
  for (int64_t i = limit(start, 0), stop = limit(end, size); i < stop; i += step.integer) {
    part.push_back(items[i]);
  }
  return part;
}

Binding sum_of(const std::vector<Binding>& items) {
  Binding sum = Binding::of_int(0);
  for (const Binding& item : items) {
    if (!item.is(BindingKind::kInt)) return {};
    sum.integer += item.integer;
  }
  return sum;
}

}  // namespace

Binding Interpreter::equal_lists(const std::vector<Binding>& a, const std::vector<Binding>& b) {
  if (a.size() != b.size()) return Binding::of_bool(false);
  std::optional<ValueId> all;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!a[i].is_number() || !b[i].is_number()) return {};
    if (a[i].fixed_number() && b[i].fixed_number()) {
      if (a[i].as_double() != b[i].as_double()) return Binding::of_bool(false);
      continue;
    }
    const ValueId same =
        builder_.emit("Equal", {{numbers_.run_time(a[i]).value}, {numbers_.run_time(b[i]).value}});
    all = all ? builder_.emit("And", {{*all}, {same}}) : same;
  }
  return all ? Binding::run_time(*all) : Binding::of_bool(true);
}

/// Changes the list, which may be shared and then changes there too.
bool Interpreter::change_list(jit::Node* node, const std::string& op, const Binding& list) {
  std::vector<Binding>& items = *list.items;
  const Binding other = node->inputs().size() > 1 ? of_input(node, 1) : Binding{};
  if (op == "append") {
    items.push_back(other);
  } else if (op == "reverse") {
    std::reverse(items.begin(), items.end());
  } else if ((op == "extend" || op == "add_") && other.is(BindingKind::kList)) {
    const std::vector<Binding> more = *other.items;  // it may be the same list
    items.insert(items.end(), more.begin(), more.end());
  } else if (op == "insert" && node->inputs().size() == 3) {
    if (!other.is(BindingKind::kInt)) return false;
    const int64_t size = std::ssize(items);
    const int64_t at = other.integer < 0 ? other.integer + size : other.integer;
    items.insert(items.begin() + std::clamp<int64_t>(at, 0, size), of_input(node, 2));
  } else if (op == "pop") {
    const auto at = position(other, items.size());
    if (!at) return false;
    bindings_[node->output()] = items[*at];
    items.erase(items.begin() + static_cast<std::ptrdiff_t>(*at));
    return true;
  } else if (op == "_set_item" && node->inputs().size() == 3) {
    const auto at = position(of_input(node, 1), items.size());
    if (!at) return false;
    items[*at] = of_input(node, 2);
  } else {
    return false;
  }
  if (!node->outputs().empty()) bindings_[node->output()] = list;
  return true;
}

/// Handles tests for None, membership and equality.
bool Interpreter::compare(jit::Node* node, const std::string& op) {
  if (node->inputs().size() != 2 || node->outputs().size() != 1) return false;
  const Binding a = of_input(node, 0);
  const Binding b = of_input(node, 1);
  Binding& result = bindings_[node->output()];
  const bool equality = op == "eq" || op == "ne";
  if (op == "__is__" || op == "__isnot__") {
    if (a.is(BindingKind::kUnknown) || b.is(BindingKind::kUnknown)) return true;
    result = Binding::of_bool((a.is(BindingKind::kNone) == b.is(BindingKind::kNone)) ==
                              (op == "__is__"));
  } else if (a.is(BindingKind::kString) && b.is(BindingKind::kString) && equality) {
    result = Binding::of_bool((a.text == b.text) == (op == "eq"));
  } else if (a.is(BindingKind::kList) && b.is(BindingKind::kList) && equality) {
    builder_.begin(op);
    result = equal_lists(*a.items, *b.items);
    if (op == "eq") return true;
    if (result.is(BindingKind::kBool)) result.integer = result.integer == 0 ? 1 : 0;
    if (result.is(BindingKind::kNumber)) {
      result = Binding::run_time(builder_.emit("Not", {{result.value}}));
    }
  } else if (a.is(BindingKind::kList) && op == "__contains__") {
    const bool text = b.is(BindingKind::kString);
    const auto comparable = [&](const Binding& item) {
      return text ? item.is(BindingKind::kString) : item.fixed_number();
    };
    const auto same = [&](const Binding& item) {
      return text ? item.text == b.text : item.as_double() == b.as_double();
    };
    const bool fixed = comparable(b) && std::all_of(a.items->begin(), a.items->end(), comparable);
    if (fixed) result = Binding::of_bool(std::any_of(a.items->begin(), a.items->end(), same));
  } else {
    return false;
  }
  return true;
}

/// d[key], d[key] = value
bool Interpreter::dictionary_operator(jit::Node* node, const std::string& op,
                                      const Binding& dictionary) {
  const bool set = op == "_set_item";
  if ((!set && op != "__getitem__") || node->inputs().size() < 2) return false;
  const Binding key = of_input(node, 1);
  if (!key.is(BindingKind::kString)) return false;
  std::vector<Binding>& items = *dictionary.items;
  size_t at = 0;
  while (at < items.size() && items[at].text != key.text) at += 2;
  if (set && at == items.size()) items.insert(items.end(), {key, Binding{}});
  if (at >= items.size()) return false;
  if (set) {
    items[at + 1] = of_input(node, 2);
  } else {
    bindings_[node->output()] = items[at + 1];
  }
  return true;
}

bool Interpreter::list_operator(jit::Node* node, const std::string& op) {
  if (compare(node, op)) return true;
  const Binding list = node->inputs().empty() ? Binding{} : of_input(node, 0);
  if (list.is(BindingKind::kString) && op == "len") {
    bindings_[node->output()] = Binding::of_int(std::ssize(list.text));
    return true;
  }
  if (!list.is(BindingKind::kList)) return false;
  if (list.text == kDictionary) return dictionary_operator(node, op, list);
  if (change_list(node, op, list)) return true;
  const std::vector<Binding>& items = *list.items;
  const Binding other = node->inputs().size() > 1 ? of_input(node, 1) : Binding{};
  Binding result;
  if (op == "__getitem__" || op == "TupleIndex") {
    const auto at = position(other, items.size());
    if (!at) return false;
    result = items[*at];
  } else if (op == "len") {
    result = Binding::of_int(std::ssize(items));
  } else if (op == "sum" && node->inputs().size() == 1) {
    result = sum_of(items);
  } else if (op == "slice" && node->inputs().size() == 4) {
    const auto part = slice_of(items, other, of_input(node, 2), of_input(node, 3));
    if (!part) return false;
    result = Binding::list(*part);
  } else if (op == "list" || op == "copy") {
    result = Binding::list(items);
  } else if (op == "add" && other.is(BindingKind::kList)) {
    std::vector<Binding> both = items;
    both.insert(both.end(), other.items->begin(), other.items->end());
    result = Binding::list(std::move(both));
  } else {
    return false;
  }
  bindings_[node->output()] = result;
  if (result.is(BindingKind::kList)) {
    const auto [known, fresh] = origins_.lengths.emplace(node->output(), result.items->size());
    if (!fresh && known->second != result.items->size()) known->second = 0;
  }
  return true;
}

bool changes_list(const jit::Node& node) {
  const std::string op = node.kind().toUnqualString();
  if (std::find(kChanging.begin(), kChanging.end(), op) == kChanging.end()) return false;
  return !node.inputs().empty() && !node.input(0)->type()->isSubtypeOf(*c10::TensorType::get());
}

/// Forgets lists and attributes that an unanalysed block or operator may change.
void Interpreter::forget_changes(const jit::Node* node) {
  if (changes_list(*node) && of_input(node, 0).is(BindingKind::kList)) {
    const auto items = of_input(node, 0).items;
    for (auto& [value, binding] : bindings_) {
      if (binding.items == items) binding = {};
    }
  }
  if (node->kind() == c10::prim::SetAttr) {
    const std::string& name = node->s(c10::attr::name);
    for (auto& [path, binding] : written_) {
      if (path.ends_with(name) && !binding.is(BindingKind::kTensor)) binding = {};
    }
  }
  for (const jit::Block* block : node->blocks()) {
    for (const jit::Node* inner : block->nodes()) forget_changes(inner);
  }
}

}  // namespace parsimony::torch_io::script
