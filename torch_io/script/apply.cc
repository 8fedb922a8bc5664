// Applies the collected changes to the private copy of the module.
#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/jit/ir/constants.h>
#include <torch/csrc/jit/ir/ir.h>
#include <torch/csrc/jit/passes/dead_code_elimination.h>
#include <torch/csrc/jit/passes/shape_analysis.h>

#include <algorithm>
#include <iterator>
#include <unordered_set>
#include <utility>

#include "parsimony/programs/literal_editor.h"
#include "parsimony/torch_io/errors.h"
#include "parsimony/torch_io/script/edits_impl.h"
#include "parsimony/torch_io/script/module_tensors_impl.h"
#include "parsimony/torch_io/script/origins_impl.h"

namespace parsimony::torch_io::script {

namespace jit = torch::jit;

namespace {

/// Whether a location in a loop is changed in all iterations.
bool is_for_all_rounds(const Origins& origins, const Edits::Spot& spot, const Change& change) {
  const auto rounds = std::count(origins.calls.begin(), origins.calls.end(), std::get<0>(spot));
  return std::ssize(change.calls) == rounds;
}

void check_rounds(const Edits& edits, const Origins& origins) {
  for (const auto& [spot, change] : edits.changes) {
    if (!is_for_all_rounds(origins, spot, change)) {
      throw errors::shared_place(change.node, change.what);
    }
  }
}

bool is_all_known(const Edits& edits, jit::Node* node, int input) {
  const auto known = edits.lists.find({node, input});
  return known != edits.lists.end() && !known->second.empty() &&
         known->second.rbegin()->first + 1 == static_cast<int>(known->second.size());
}

/// Returns the elements of the list that `node` reads, for a new list: others may read the old one.
std::vector<jit::Value*> elements_of(const Origins& origins, jit::Node* node, int input,
                                     const Edits& edits, const Change& why) {
  jit::Graph& graph = *origins.graph;
  jit::Value* list = node->input(input);
  if (list->node()->kind() == c10::prim::ListConstruct) return list->node()->inputs().vec();
  std::vector<jit::Value*> elements;
  if (const auto held = jit::toIValue(list)) {
    for (const c10::IValue& item : held->toListRef())
      elements.push_back(graph.insertConstant(item));
    return elements;
  }
  if (const auto length = origins.lengths.find(list); length != origins.lengths.end()) {
    for (size_t i = 0; i < length->second; ++i) {
      jit::Value* at = graph.insertConstant(static_cast<int64_t>(i));
      jit::Node* element = graph.create(c10::aten::__getitem__, {list, at});
      element->output()->setType(c10::IntType::get());
      elements.push_back(graph.insertNode(element)->output());
    }
    if (!elements.empty()) return elements;
  }
  if (!is_all_known(edits, node, input)) throw programs::not_written(why.node, why.what);
  for (const auto& [item, number] : edits.lists.at({node, input})) {
    elements.push_back(graph.insertConstant(number));
  }
  return elements;
}

void change_elements(const Origins& origins, jit::Node* node, int input, const Edits& edits,
                     const std::vector<std::pair<int, const Change*>>& changes) {
  jit::Graph& graph = *origins.graph;
  const jit::WithInsertPoint before(node);
  std::vector<jit::Value*> elements = elements_of(origins, node, input, edits, *changes[0].second);
  for (const auto& [item, change] : changes) {
    if (static_cast<size_t>(item) >= elements.size()) {
      throw programs::not_written(change->node, change->what);
    }
    elements[item] = graph.insertConstant(change->value);
  }
  const auto type = node->input(input)->type()->cast<c10::ListType>();
  const c10::TypePtr element =
      type ? type->getElementType() : static_cast<c10::TypePtr>(c10::IntType::get());
  jit::Node* list = graph.createList(element, elements);
  list->insertBefore(node);
  node->replaceInput(input, list->output());
}

void change_numbers(const Origins& origins, const Edits& edits) {
  jit::Graph& graph = *origins.graph;
  std::map<std::pair<jit::Node*, int>, std::vector<std::pair<int, const Change*>>> lists;
  for (const auto& [spot, change] : edits.changes) {
    const auto& [node, input, item] = spot;
    if (item != kNone) {
      lists[{node, input}].emplace_back(item, &change);
      continue;
    }
    const jit::WithInsertPoint before(node);
    node->replaceInput(input, graph.insertConstant(change.value));
  }
  for (const auto& [where, changes] : lists) {
    change_elements(origins, where.first, where.second, edits, changes);
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
  split->copyMetadata(node);
  split->output()->setType(node->output()->type());
  node->output()->replaceAllUsesWith(split->output());
  node->destroy();
}

/// Returns an attribute of the module itself; names may contain dots.
std::string attribute_name(const jit::Module& module, std::string name) {
  std::replace_if(
      name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  while (module.hasattr(name)) name += "_";
  return name;
}

using Nodes = std::unordered_set<jit::Node*>;

/// Collects the calls that compute the value.
void collect_calls(jit::Value* computed, Nodes& calls) {
  jit::Node* node = computed->node();
  if (!node->kind().is_aten() && node->kind() != c10::prim::ListConstruct) return;
  if (node->hasSideEffects() || !node->blocks().empty() || !calls.insert(node).second) return;
  for (jit::Value* input : node->inputs()) collect_calls(input, calls);
}

/// Removes calls whose results are unread, even by others of them.
void drop_unread(Nodes calls) {
  const auto is_read = [](jit::Node* node) {
    const auto outputs = node->outputs();
    return std::any_of(outputs.begin(), outputs.end(), [](jit::Value* v) { return v->hasUses(); });
  };
  for (auto it = calls.begin(); it != calls.end();) {
    jit::Node* node = *it;
    it = is_read(node) ? std::next(it) : calls.erase(it);
    if (calls.contains(node)) continue;
    node->destroy();
    it = calls.begin();  // those that only it has read
  }
}

/// Stores the value that the program has computed as an attribute.
void hold(jit::Graph& graph, jit::Value* computed, const std::string& attribute) {
  const jit::WithInsertPoint before(computed->node());
  computed->replaceAllUsesWith(graph.insertGetAttr(graph.inputs()[0], attribute));
}

/// @returns calls that may be unused now
Nodes add_duplicates(Edits& edits, const Origins& origins) {
  Nodes calls;
  jit::Graph& graph = *origins.graph;
  jit::Module module = origins.module;
  for (auto& [name, duplicate] : edits.duplicates) {
    const std::string attribute = attribute_name(module, name);
    const bool parameter =
        duplicate.computed == nullptr && at::isFloatingType(duplicate.tensor.scalar_type());
    const at::Tensor held = duplicate.tensor.detach().clone().set_requires_grad(parameter);
    module.register_attribute(attribute, c10::TensorType::get(), held, parameter, !parameter);
    if (duplicate.computed != nullptr) {
      collect_calls(duplicate.computed, calls);
      hold(graph, duplicate.computed, attribute);
    }
    for (const SourceLocation& location : duplicate.readers) {
      jit::Node* node = origins.calls[location.call];
      const jit::WithInsertPoint before(node);
      jit::Value* value = graph.insertGetAttr(graph.inputs()[0], attribute);
      if (location.item != kNone) throw programs::not_written(name, "a tensor in a list");
      node->replaceInput(location.input, value);
    }
    edits.placed[name] = held;
    edits.tensors[name] = std::move(duplicate.tensor);
  }
  edits.duplicates.clear();
  return calls;
}

}  // namespace

at::Tensor as_stored(const TensorOrigin& origin, const at::Tensor& tensor) {
  if (!origin.source.defined() || !origin.source.is_complex()) return tensor;
  if (tensor.numel() == 0) return at::empty({0}, origin.source.options());
  return at::view_as_complex(tensor.contiguous());
}

namespace {

struct Replacement {
  std::string name;
  at::Tensor held;
  at::Tensor fresh;
  at::Tensor standing;  ///< placeholder in the private copy
};

/// Returns replacements of attributes.
std::vector<Replacement> replacements(const Edits& edits, const Origins& origins) {
  std::vector<Replacement> found;
  for (const auto& [name, tensor] : edits.tensors) {
    const auto placed = edits.placed.find(name);
    if (placed == edits.placed.end() && origins.tensor_origins.at(name).constant != nullptr)
      continue;
    const at::Tensor held =
        placed == edits.placed.end() ? origins.tensor_origins.at(name).source : placed->second;
    const auto origin = origins.tensor_origins.find(name);
    at::Tensor fresh = origin == origins.tensor_origins.end()
                           ? tensor.detach()
                           : as_stored(origin->second, tensor.detach());
    if (fresh.is_alias_of(held)) fresh = fresh.clone();
    found.push_back({name, held, fresh, fresh});
  }
  return found;
}

void place_constants(const Edits& edits, const Origins& origins) {
  for (const auto& [name, tensor] : edits.tensors) {
    const auto origin = origins.tensor_origins.find(name);
    if (origin == origins.tensor_origins.end() || edits.removed.contains(name)) continue;
    jit::Node* constant = origin->second.constant;
    if (constant == nullptr) continue;
    constant->t_(c10::attr::value, as_stored(origin->second, tensor.detach().clone()));
    constant->output()->inferTypeFrom(constant->t(c10::attr::value));
  }
}

/// Removes the calls with everything that is then unused, including constants: y = x + f(x) becomes
/// y = x.
///
///     %y = aten::add(%f, %x, %1)      uses of %y read %x; removes the call, then %f's own calls
///     %y = aten::add_(%f, %x, %1)     likewise, and later uses of %f, which is the sum there
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
  for_each_node(*origins.graph->block(), [&](const jit::Node* node) { left.insert(node); });
  for (const auto& [name, origin] : origins.tensor_origins) {
    if (origin.constant != nullptr && !left.contains(origin.constant)) edits.removed.insert(name);
  }
}

}  // namespace

bool can_write(const Edits& edits, const Origins& origins, const Edits::Spot& spot,
               const Change& change) {
  const auto& [node, input, item] = spot;
  if (!is_for_all_rounds(origins, spot, change)) return false;
  if (item == kNone) return true;
  const jit::Value* list = node->input(input);
  const auto length = origins.lengths.find(list);
  return list->node()->kind() == c10::prim::ListConstruct || jit::toIValue(list) ||
         (length != origins.lengths.end() && length->second > 0) ||
         is_all_known(edits, node, input);
}

void apply(Edits& edits, const Origins& origins) {
  const at::NoGradGuard no_grad;
  check_rounds(edits, origins);
  jit::Graph& graph = *origins.graph;
  change_numbers(origins, edits);
  Nodes useless = add_duplicates(edits, origins);
  for (const auto& [node, sizes] : edits.splits) {
    useless.erase(node);  // a replacement follows
    name_sizes(graph, node, sizes);
  }
  drop_unread(std::move(useless));  // no node may take its address
  for (jit::Node* node : edits.drops) node->destroy();
  bypass(edits, origins);
  jit::EraseShapeInformation(origins.graph);
}

std::vector<Outside> place_tensors(Edits& edits, const Origins& origins) {
  const at::NoGradGuard no_grad;
  std::vector<Outside> outside;
  std::vector<Replacement> all = replacements(edits, origins);
  for (const auto& [path, part] : origins.module.named_modules()) {
    for (const auto& [name, value] : part.named_attributes(/*recurse=*/false)) {
      if (!value.isTensor()) continue;
      for (Replacement& one : all) {
        if (!same_memory(one.held, value.toTensor())) continue;
        outside.push_back({path, name, one.fresh});
        one.standing = at::empty({1}, one.fresh.options());
        break;
      }
    }
  }
  TensorPairs pairs;
  for (const Replacement& one : all) pairs.emplace_back(one.held, one.standing);
  replace_everywhere(origins.module, pairs);
  for (const Replacement& one : all) edits.placed[one.name] = one.standing;
  place_constants(edits, origins);
  return outside;
}

}  // namespace parsimony::torch_io::script
