// Makes the collected changes in the private copy of the module.
#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/jit/ir/constants.h>
#include <torch/csrc/jit/ir/ir.h>
#include <torch/csrc/jit/passes/shape_analysis.h>

#include <algorithm>
#include <utility>

#include "parsimony/torch_io/script/edits_impl.h"
#include "parsimony/torch_io/script/errors_impl.h"

namespace parsimony::torch_io::script {

namespace jit = torch::jit;

namespace {

/// A place in a loop is changed for all rounds or not at all.
void check_rounds(const Edits& edits, const Origins& origins) {
  for (const auto& [spot, change] : edits.changes) {
    const auto rounds = static_cast<size_t>(
        std::count(origins.calls.begin(), origins.calls.end(), std::get<0>(spot)));
    if (change.calls.size() != rounds) throw errors::shared_place(change.node, change.what);
  }
}

/// The elements of the list that `node` reads, in a list of its own: others may read the old one.
std::vector<jit::Value*> elements_of(jit::Graph& graph, jit::Node* node, int input,
                                     const Edits& edits, const Change& why) {
  jit::Value* list = node->input(static_cast<size_t>(input));
  if (list->node()->kind() == c10::prim::ListConstruct) return list->node()->inputs().vec();
  std::vector<jit::Value*> elements;
  if (const auto held = jit::toIValue(list)) {
    for (const c10::IValue& item : held->toListRef())
      elements.push_back(graph.insertConstant(item));
    return elements;
  }
  const auto known = edits.lists.find({node, input});
  if (known == edits.lists.end()) throw errors::not_written(why.node, why.what);
  for (const auto& [item, number] : known->second) {
    if (item != static_cast<int>(elements.size())) throw errors::not_written(why.node, why.what);
    elements.push_back(graph.insertConstant(number));
  }
  return elements;
}

void change_elements(jit::Graph& graph, jit::Node* node, int input, const Edits& edits,
                     const std::vector<std::pair<int, const Change*>>& changes) {
  const jit::WithInsertPoint before(node);
  std::vector<jit::Value*> elements = elements_of(graph, node, input, edits, *changes[0].second);
  for (const auto& [item, change] : changes) {
    if (static_cast<size_t>(item) >= elements.size()) {
      throw errors::not_written(change->node, change->what);
    }
    elements[static_cast<size_t>(item)] = graph.insertConstant(change->value);
  }
  const auto type = node->input(static_cast<size_t>(input))->type()->cast<c10::ListType>();
  const c10::TypePtr element =
      type ? type->getElementType() : static_cast<c10::TypePtr>(c10::IntType::get());
  jit::Node* list = graph.createList(element, elements);
  list->insertBefore(node);
  node->replaceInput(static_cast<size_t>(input), list->output());
}

void change_numbers(jit::Graph& graph, const Edits& edits) {
  std::map<std::pair<jit::Node*, int>, std::vector<std::pair<int, const Change*>>> lists;
  for (const auto& [spot, change] : edits.changes) {
    const auto& [node, input, item] = spot;
    if (item != kNone) {
      lists[{node, input}].emplace_back(item, &change);
      continue;
    }
    const jit::WithInsertPoint before(node);
    node->replaceInput(static_cast<size_t>(input), graph.insertConstant(change.value));
  }
  for (const auto& [where, changes] : lists) {
    change_elements(graph, where.first, where.second, edits, changes);
  }
}

void name_sizes(jit::Graph& graph, jit::Node* node, const std::vector<int64_t>& sizes) {
  const jit::WithInsertPoint before(node);
  std::vector<jit::Value*> elements;
  for (const int64_t size : sizes) elements.push_back(graph.insertConstant(size));
  jit::Node* list = graph.createList(c10::IntType::get(), elements);
  list->insertBefore(node);
  jit::Node* split = graph.create(c10::Symbol::fromQualString("aten::split_with_sizes"),
                                  {node->input(0), list->output(), node->input(2)});
  split->insertBefore(node);
  split->output()->setType(node->output()->type());
  node->output()->replaceAllUsesWith(split->output());
  node->destroy();
}

/// An attribute of the module itself, for names may hold dots.
std::string attribute_name(const jit::Module& module, std::string name) {
  std::replace_if(
      name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  while (module.hasattr(name)) name += "_";
  return name;
}

void add_duplicates(const Edits& edits, Origins& origins) {
  jit::Graph& graph = *origins.graph;
  for (const auto& [name, duplicate] : edits.duplicates) {
    const std::string attribute = attribute_name(origins.module, name);
    const bool parameter = at::isFloatingType(duplicate.tensor.scalar_type());
    origins.module.register_attribute(
        attribute, c10::TensorType::get(),
        duplicate.tensor.detach().clone().set_requires_grad(parameter), parameter, !parameter);
    for (const Place& place : duplicate.readers) {
      jit::Node* node = origins.calls[static_cast<size_t>(place.call)];
      const jit::WithInsertPoint before(node);
      jit::Value* value = graph.insertGetAttr(graph.inputs()[0], attribute);
      if (place.item != kNone) throw errors::not_written(name, "a tensor in a list");
      node->replaceInput(static_cast<size_t>(place.input), value);
    }
  }
}

bool same_memory(const at::Tensor& a, const at::Tensor& b) {
  if (a.is_same(b)) return true;
  return a.defined() && b.defined() && a.layout() == at::kStrided && b.layout() == at::kStrided &&
         a.numel() > 0 && a.data_ptr() == b.data_ptr() && a.sizes() == b.sizes() &&
         a.strides() == b.strides();
}

/// The tensors that take the place of others, wherever attributes hold these.
class Replacement {
 public:
  Replacement(const Edits& edits, const Origins& origins) {
    for (const auto& [name, tensor] : edits.tensors) {
      const Home& home = origins.homes.at(name);
      if (home.constant != nullptr) continue;
      pairs_.emplace_back(home.source, tensor.detach().to(home.source.device()).clone());
    }
  }

  /// All names of one tensor get the same new one.
  std::optional<at::Tensor> of(const at::Tensor& old) {
    for (auto& [source, fresh] : pairs_) {
      if (!same_memory(source, old)) continue;
      if (old.requires_grad()) fresh.set_requires_grad(true);
      return fresh;
    }
    return std::nullopt;
  }

  /// In lists and tuples too; empty if there is nothing to replace.
  std::optional<c10::IValue> of(const c10::IValue& old) {
    if (old.isTensor()) {
      const auto fresh = of(old.toTensor());
      return fresh ? std::optional(c10::IValue(*fresh)) : std::nullopt;
    }
    if (!old.isList() && !old.isTuple()) return std::nullopt;
    std::vector<c10::IValue> items =
        old.isList() ? old.toListRef().vec() : old.toTupleRef().elements().vec();
    bool any = false;
    for (c10::IValue& item : items) {
      auto fresh = of(item);
      any = any || fresh.has_value();
      if (fresh) item = std::move(*fresh);
    }
    if (!any) return std::nullopt;
    if (old.isTuple()) return c10::IValue(c10::ivalue::Tuple::create(std::move(items)));
    c10::impl::GenericList list(old.toList().elementType());
    for (c10::IValue& item : items) list.push_back(std::move(item));
    return c10::IValue(std::move(list));
  }

 private:
  std::vector<std::pair<at::Tensor, at::Tensor>> pairs_;
};

void replace_tensors(const Edits& edits, Origins& origins) {
  Replacement replacement(edits, origins);
  for (const auto& [path, part] : origins.module.named_modules()) {
    jit::Module owner = part;
    std::vector<std::pair<std::string, c10::IValue>> fresh;
    for (const auto& [name, value] : owner.named_attributes(/*recurse=*/false)) {
      if (auto changed = replacement.of(value)) fresh.emplace_back(name, std::move(*changed));
    }
    for (auto& [name, value] : fresh) owner.setattr(name, std::move(value));
  }
  for (const auto& [name, tensor] : edits.tensors) {
    jit::Node* constant = origins.homes.at(name).constant;
    if (constant == nullptr) continue;
    constant->t_(c10::attr::value, tensor.detach().clone());
    constant->output()->inferTypeFrom(constant->t(c10::attr::value));
  }
}

}  // namespace

void apply(const Edits& edits, Origins& origins) {
  const at::NoGradGuard no_grad;
  check_rounds(edits, origins);
  jit::Graph& graph = *origins.graph;
  change_numbers(graph, edits);
  add_duplicates(edits, origins);
  replace_tensors(edits, origins);
  for (const auto& [node, sizes] : edits.splits) name_sizes(graph, node, sizes);
  for (jit::Node* node : edits.drops) node->destroy();
  bypass(edits, origins);
  jit::EraseShapeInformation(origins.graph);
}

}  // namespace parsimony::torch_io::script
