#include "parsimony/torch_io/script/editor.h"

#include <ATen/ATen.h>
#include <torch/csrc/jit/ir/ir.h>
#include <torch/csrc/jit/serialization/import.h>

#include <algorithm>
#include <optional>
#include <sstream>
#include <unordered_set>
#include <utility>

#include "parsimony/graph/model_editor.h"
#include "parsimony/graph/slice.h"
#include "parsimony/torch_io/cut.h"
#include "parsimony/torch_io/errors.h"
#include "parsimony/torch_io/reason.h"
#include "parsimony/torch_io/script/edits_impl.h"
#include "parsimony/torch_io/script/module_tensors_impl.h"
#include "parsimony/torch_io/script/origins_impl.h"
#include "parsimony/torch_io/tensor.h"

namespace parsimony::torch_io {

namespace jit = torch::jit;

using script::Change;
using script::ConstantOrigin;
using script::Edits;
using script::Origins;
using script::Outside;
using script::SourceLocation;
using script::TensorOrigin;

namespace {

UnsupportedError cannot_edit(std::string_view why) {
  return UnsupportedError("the module cannot be edited: ", why);
}

ModelError no_such_input(std::string_view node, int input, int inputs) {
  return ModelError("node ", in_quotes(node), " has no input ", input, ", only ", inputs);
}

UnsupportedError no_scale(std::string_view node) {
  return UnsupportedError("node ", in_quotes(node),
                          ": this version's attention derives its scale from a width that would "
                          "change, and cannot take another");
}

}  // namespace

struct ScriptEditor::Impl {
  Graph graph;  // its weights are views: only constants' values are read
  std::shared_ptr<Origins> origins;
  Edits edits;
  std::unordered_map<std::string, NodeId> nodes;
  std::unordered_map<std::string, Shape> synthetic;  // current
  std::optional<GraphEditor> shallow;                // without removed blocks
  Original original = Original::kStays;
  std::unordered_set<const c10::StorageImpl*> shared;
  bool applied = false;
  std::optional<jit::Module> small;  // with the current tensors

  void check_open() const {
    if (applied) throw cannot_edit("after finish() only values may change");
  }

  NodeId node(const std::string& key) const {
    const auto found = nodes.find(key);
    if (found == nodes.end()) throw ModelError("there is no node ", in_quotes(key));
    return found->second;
  }

  SourceLocation operand(NodeId id, int input) const {
    const auto& locations = origins->operands.at(id);
    return static_cast<size_t>(input) < locations.size() ? locations[input] : SourceLocation{};
  }

  const TensorOrigin& origin(const std::string& name) const {
    const auto found = origins->tensor_origins.find(name);
    if (found == origins->tensor_origins.end()) throw errors::unknown_tensor(name);
    return found->second;
  }

  /// Returns a tensor that will be changed.
  at::Tensor& tensor(const std::string& name) {
    small.reset();
    const auto duplicate = edits.duplicates.find(name);
    if (duplicate != edits.duplicates.end()) return duplicate->second.tensor;
    const auto known = edits.tensors.find(name);
    if (known != edits.tensors.end()) return known->second;
    const TensorOrigin& from = origin(name);
    if (from.computed == nullptr) return edits.tensors[name] = from.tensor;
    return edits.duplicates.emplace(name, script::Duplicate{from.tensor.clone(), {}, from.computed})
        .first->second.tensor;
  }

  void change(const SourceLocation& location, const c10::IValue& value, const std::string& node_key,
              const std::string& what) {
    if (!location.known()) throw errors::not_written(node_key, what);
    jit::Node* call = origins->calls[location.call];
    const Edits::Spot spot(call, location.input, location.item);
    const auto [it, fresh] = edits.changes.try_emplace(spot, Change{value, node_key, what, {}});
    it->second.calls.insert(location.call);
    if (fresh) return;
    const bool same = !value.isTensor() && it->second.value == value;
    if (!same) throw errors::shared_place(node_key, what);
  }

  /// Whether its memory may be reused. Integers are read again by later changes.
  bool may_use_up(const at::Tensor& tensor) const {
    return original == Original::kGivenUp && at::isFloatingType(tensor.scalar_type()) &&
           !shared.contains(tensor.storage().unsafeGetStorageImpl());
  }

  void empty_unread();
  void set_elements(const std::string& key, const std::string& what, const ConstantOrigin& written,
                    const HostTensor& from, const HostTensor& to);
  void set_split(const std::string& key, NodeId id, const HostTensor& to, bool equal_parts);
  void set_length(const std::string& key, const ConstantOrigin& written, const HostTensor& to);
  void set_tensor(const std::string& key, NodeId id, int input, const HostTensor& to);
  bool set_pieces(NodeId id, int input, const HostTensor& to);
};

namespace {

bool all_equal(const std::vector<int64_t>& values) {
  return std::adjacent_find(values.begin(), values.end(), std::not_equal_to<>()) == values.end();
}

std::string input_name(int input) { return "input " + std::to_string(input); }

}  // namespace

ScriptEditor::ScriptEditor(const ScriptGraph& script, Original original)
    : impl_(std::make_unique<Impl>()) {
  impl_->graph = script.graph;
  impl_->origins = script.origins;
  impl_->original = original;
  if (original == Original::kGivenUp) impl_->shared = script::shared_memory(*script.origins);
  for (const NodeId n : script.graph.nodes.ids()) {
    impl_->nodes.emplace(key_of(script.graph, script.graph.nodes[n]), n);
  }
  for (const Weight& weight : script.graph.weights) {
    if (is_synthetic(script, weight.name)) impl_->synthetic[weight.name] = weight.dims;
  }
}

ScriptEditor::~ScriptEditor() = default;

void ScriptEditor::bypass(std::span<const BypassedNode> nodes) {
  impl_->check_open();
  const auto& calls = impl_->origins->calls;
  for (const auto& [key, input] : nodes) {
    const SourceLocation location = impl_->operand(impl_->node(key), input);
    jit::Node* call = location.known() && location.item == kNone ? calls[location.call] : nullptr;
    const std::string op = call == nullptr ? "" : call->kind().toUnqualString();
    const bool adds = op == "add" || op == "add_" || op == "__iadd__";
    if (!adds || std::count(calls.begin(), calls.end(), call) != 1) {
      throw errors::not_written(key, input_name(input));
    }
    impl_->edits.bypasses.emplace_back(call, location.input);
  }
  if (!impl_->shallow) impl_->shallow.emplace(impl_->graph);
  impl_->shallow->bypass(nodes);
  impl_->empty_unread();
}

/// Empties unread attributes. They cannot be removed: modules of one type share them.
void ScriptEditor::Impl::empty_unread() {
  IdVector<WeightId, bool> shown(graph.weights.size(), false);
  for (const Value& value : shallow->graph().values) {
    if (value.weight != kNone) shown[value.weight] = true;
  }
  for (const Value& value : graph.values) {
    if (value.weight == kNone || shown[value.weight]) continue;
    const std::string& name = graph.weight(value.weight).name;
    const auto found = origins->tensor_origins.find(name);
    if (found == origins->tensor_origins.end() || !found->second.tensor.defined()) {
      continue;
    }
    const bool of_program = found->second.constant != nullptr || found->second.computed != nullptr;
    if (of_program) continue;  // removed with its node
    edits.tensors[name] = at::empty({0}, found->second.tensor.options());
  }
}

void ScriptEditor::copy(const std::string& name, const std::string& of, const std::string& consumer,
                        int input) {
  impl_->check_open();
  const NodeId id = impl_->node(consumer);
  const auto inputs = static_cast<int>(impl_->graph.node(id).inputs.size());
  if (input < 0 || input >= inputs) throw no_such_input(consumer, input, inputs);
  if (const auto known = impl_->synthetic.find(of); known != impl_->synthetic.end()) {
    const Shape dims = known->second;
    impl_->synthetic[name] = dims;
    return;
  }
  const TensorOrigin& original = impl_->origin(of);
  if (impl_->origins->tensor_origins.contains(name)) {
    throw ModelError("the name ", in_quotes(name), " is taken");
  }
  const SourceLocation location = impl_->operand(id, input);
  const bool complex = original.source.defined() && original.source.is_complex();
  if (!location.known() || complex) throw errors::not_written(consumer, input_name(input));
  auto& duplicate = impl_->edits.duplicates[name];
  const auto changed = impl_->edits.tensors.find(of);
  if (!duplicate.tensor.defined()) {
    duplicate.tensor =
        (changed == impl_->edits.tensors.end() ? original.tensor : changed->second).clone();
  }
  duplicate.readers.push_back(location);
}

void ScriptEditor::slice(const std::string& name, std::span<const AxisKeep> axes) {
  impl_->check_open();
  const auto synthetic = impl_->synthetic.find(name);
  if (synthetic != impl_->synthetic.end()) {
    check_slices(name, synthetic->second, axes);
    synthetic->second = sliced(synthetic->second, axes);
    return;
  }
  at::Tensor& tensor = impl_->tensor(name);
  tensor = impl_->may_use_up(tensor) ? cut_in_place(name, tensor, axes) : cut(name, tensor, axes);
}

void ScriptEditor::zero_smallest(const std::string& name, int64_t count) {
  at::Tensor& tensor = impl_->tensor(name);
  tensor = with_zeros(name, tensor, count);
}

void ScriptEditor::assign(const std::string& name, std::span<const std::byte> values) {
  at::Tensor& tensor = impl_->tensor(name);
  tensor = with_values(name, tensor, values);
}

void ScriptEditor::set_attribute(const std::string& key, const std::string& attribute,
                                 std::span<const int64_t> values) {
  impl_->check_open();
  const NodeId id = impl_->node(key);
  const auto found = impl_->origins->attributes.find(id);
  if (found == impl_->origins->attributes.end() || values.size() != 1) {
    throw errors::not_written(key, "\"" + attribute + "\"");
  }
  for (const auto& [name, location] : found->second) {
    if (name == attribute) return impl_->change(location, values[0], key, "\"" + attribute + "\"");
  }
  throw errors::not_written(key, "\"" + attribute + "\"");
}

void ScriptEditor::Impl::set_elements(const std::string& key, const std::string& what,
                                      const ConstantOrigin& written, const HostTensor& from,
                                      const HostTensor& to) {
  if (from.ints.size() != to.ints.size()) throw errors::not_written(key, what);
  const int64_t sign = written.negated ? -1 : 1;
  for (size_t i = 0; i < to.ints.size(); ++i) {
    const SourceLocation location =
        i < written.elements.size() ? written.elements[i] : SourceLocation{};
    if (location.known() && location.item != kNone) {
      jit::Node* call = origins->calls[location.call];
      edits.lists[{call, location.input}].emplace(location.item, sign * from.ints[i]);
    }
    if (from.ints[i] != to.ints[i]) change(location, sign * to.ints[i], key, what);
  }
}

/// chunk(x, n, dim), tensor_split(x, …, dim), split(x, size, dim) and split_with_sizes of computed
/// sizes become split_with_sizes(x, sizes, dim).
void ScriptEditor::Impl::set_split(const std::string& key, NodeId id, const HostTensor& to,
                                   bool equal_parts) {
  if (equal_parts && all_equal(to.ints)) return;
  const SourceLocation location = operand(id, 0);
  jit::Node* call = location.known() ? origins->calls[location.call] : nullptr;
  std::string op = call == nullptr ? "" : call->kind().toUnqualString();
  if (op.starts_with("unsafe_")) op.erase(0, std::string_view("unsafe_").size());
  if (op != "chunk" && op != "split" && op != "split_with_sizes" && op != "tensor_split") {
    throw errors::not_written(key, "the sizes of the parts");
  }
  const auto [it, fresh] = edits.splits.emplace(call, to.ints);
  if (!fresh && it->second != to.ints) throw errors::shared_place(key, "the sizes of the parts");
}

/// narrow(x, dim, start, length): the end follows from the length.
void ScriptEditor::Impl::set_length(const std::string& key, const ConstantOrigin& written,
                                    const HostTensor& to) {
  const SourceLocation start = origins->constants.at(written.start_of).elements.at(0);
  jit::Node* call = origins->calls[start.call];
  const auto changed = edits.changes.find(Edits::Spot(call, start.input, start.item));
  const Weight& before = graph.weight(graph.value(written.start_of).weight);
  const int64_t begin =
      changed == edits.changes.end() ? to_host(before).ints.at(0) : changed->second.value.toInt();
  change(written.elements.at(0), to.ints.at(0) - begin, key, "the length");
}

/// Sets elements of a list that is built from numbers, such as the bounds of a slice.
bool ScriptEditor::Impl::set_pieces(NodeId id, int input, const HostTensor& to) {
  const NodeId list = graph.value(graph.node(id).inputs[input]).producer;
  if (list == kNone || graph.node(list).op != "Concat" || to.floating()) return false;
  const auto pieces = static_cast<int>(graph.node(list).inputs.size());
  if (to.count() != pieces) return false;
  for (int i = 0; i < pieces; ++i) {
    if (!operand(list, i).known()) return false;
  }
  for (int i = 0; i < pieces; ++i) {
    set_tensor(key_of(graph, graph.node(list)), list, i, HostTensor::vector({to.ints[i]}));
  }
  return true;
}

void ScriptEditor::Impl::set_tensor(const std::string& key, NodeId id, int input,
                                    const HostTensor& to) {
  const SourceLocation location = operand(id, input);
  if (!location.known() && set_pieces(id, input, to)) return;
  if (!location.known()) throw errors::not_written(key, input_name(input));
  jit::Node* call = origins->calls[location.call];
  if (static_cast<size_t>(location.input) >= call->inputs().size()) throw no_scale(key);
  c10::TypePtr type = call->input(location.input)->type();
  const auto list = type->cast<c10::ListType>();
  if (list) type = list->getElementType();
  const bool scalar = !type->isSubtypeOf(*c10::TensorType::get()) && to.count() == 1;
  if (scalar && to.floating()) return change(location, to.floats[0], key, input_name(input));
  if (scalar) return change(location, to.ints[0], key, input_name(input));
  if (list && type->kind() == c10::TypeKind::IntType) {
    return change(location, to.ints, key, input_name(input));
  }
  change(location, to_tensor(to), key, input_name(input));
}

void ScriptEditor::set_input(const std::string& key, int input, const HostTensor& constant) {
  impl_->check_open();
  const NodeId id = impl_->node(key);
  const Node& node = impl_->graph.node(id);
  if (input < 0) throw no_such_input(key, input, static_cast<int>(node.inputs.size()));
  const ValueId value =
      static_cast<size_t>(input) < node.inputs.size() ? node.inputs[input] : kNone;
  if (value == kNone) throw errors::not_written(key, input_name(input));
  const auto found = impl_->origins->constants.find(value);
  if (found == impl_->origins->constants.end()) return impl_->set_tensor(key, id, input, constant);
  const ConstantOrigin& written = found->second;
  if (impl_->graph.value(value).weight == kNone) {  // built at run time
    return impl_->set_split(key, id, constant, written.equal_parts);
  }
  const HostTensor from = to_host(impl_->graph.weight(impl_->graph.value(value).weight));
  if (constant.floating()) return impl_->set_tensor(key, id, input, constant);
  const bool placed = std::any_of(written.elements.begin(), written.elements.end(),
                                  [](const SourceLocation& location) { return location.known(); });
  if (written.start_of != kNone) {
    impl_->set_length(key, written, constant);
  } else if (node.op == "Split" && (written.equal_parts || !placed)) {
    impl_->set_split(key, id, constant, written.equal_parts);
  } else {
    impl_->set_elements(key, input_name(input), written, from, constant);
  }
}

void ScriptEditor::update_shapes(const ChangeOf& change) {
  impl_->check_open();
  const Graph& graph = impl_->graph;
  const auto changed = [&](ValueId value) { return change(graph.value(value).name); };
  for (const script::SizeLiteral& size_literal : impl_->origins->size_literals) {
    const auto shapes = changed(size_literal.value);
    if (!shapes) continue;
    const size_t dim = size_literal.dim;
    const int64_t size = shapes->after.at(dim);
    jit::Node* call = impl_->origins->calls[size_literal.location.call];
    impl_->edits.lists[{call, size_literal.location.input}].emplace(size_literal.location.item,
                                                                    shapes->before.at(dim));
    if (size != shapes->before.at(dim)) {
      impl_->change(size_literal.location, size, graph.value(size_literal.value).name,
                    "a repeated size");
    }
  }
  for (const script::ImplicitScale& frozen : impl_->origins->frozen) {
    const auto shapes = changed(frozen.value);
    const size_t dim = frozen.dim;
    if (!shapes || shapes->before.at(dim) == shapes->after.at(dim)) continue;
    jit::Node* call = impl_->origins->calls[frozen.location.call];
    const std::string& name = graph.value(frozen.value).name;
    if (call->inputs().size() <= static_cast<size_t>(frozen.location.input)) {
      throw no_scale(name);
    }
    // A plan may have derived it.
    const Edits::Spot spot(call, frozen.location.input, frozen.location.item);
    if (impl_->edits.changes.contains(spot)) continue;
    const c10::IValue number = frozen.whole ? c10::IValue(static_cast<int64_t>(frozen.number))
                                            : c10::IValue(frozen.number);
    impl_->change(frozen.location, number, name, frozen.whole ? "a number" : "the scale");
  }
  for (const script::Check& check : impl_->origins->checks) {
    const auto changes = [&](const script::Size& size) {
      const auto shapes = size.value == kNone ? std::nullopt : changed(size.value);
      if (!shapes || size.dim == kNone) return shapes.has_value();
      const size_t dim = size.dim;
      return shapes->before.at(dim) != shapes->after.at(dim);
    };
    const bool differs = std::any_of(check.sizes.begin(), check.sizes.end(), changes);
    if (differs) impl_->edits.drops.insert(check.node);
  }
}

bool ScriptEditor::edited() const { return impl_->edits.any(); }

bool ScriptEditor::can_write(const std::string& node) const {
  return std::ranges::all_of(impl_->edits.changes, [&](const auto& entry) {
    const auto& [spot, change] = entry;
    return change.node != node || script::can_write(impl_->edits, *impl_->origins, spot, change);
  });
}

torch::jit::Module ScriptEditor::finish() {
  if (impl_->small) return *impl_->small;
  const Origins& origins = *impl_->origins;
  try {
    if (!impl_->applied) script::apply(impl_->edits, origins);
    impl_->applied = true;
    const std::vector<Outside> outside = script::place_tensors(impl_->edits, origins);
    // A graph caches compiled code; reading it again avoids that.
    std::stringstream stream;
    origins.module.save(stream);
    jit::Module small = jit::load(stream, at::Device(at::kCPU));
    std::unordered_map<std::string, jit::Module> parts;
    for (const auto& [path, part] : small.named_modules()) parts.emplace(path, part);
    script::TensorPairs pairs;
    for (const auto& [path, attribute, tensor] : outside) {
      pairs.emplace_back(parts.at(path).attr(attribute).toTensor(), tensor);
    }
    script::replace_everywhere(small, pairs);
    return impl_->small.emplace(std::move(small));
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {  // libtorch has several kinds
    throw cannot_edit(first_line(error));
  }
}

}  // namespace parsimony::torch_io
