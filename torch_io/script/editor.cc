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

using programs::input_name;
using programs::not_written;
using script::Change;
using script::Edits;
using script::Origins;
using script::Outside;
using script::SourceLocation;
using script::TensorOrigin;

namespace {

UnsupportedError cannot_edit(std::string_view why) {
  return UnsupportedError("the module cannot be edited: ", why);
}

/// What stands for these numbers in a place of this type.
c10::IValue literal_of(const HostTensor& numbers, c10::TypePtr type) {
  const auto list = type->cast<c10::ListType>();
  if (list) type = list->getElementType();
  if (!type->isSubtypeOf(*c10::TensorType::get()) && numbers.count() == 1) {
    return numbers.floating() ? c10::IValue(numbers.floats[0]) : c10::IValue(numbers.ints[0]);
  }
  if (list && type->kind() == c10::TypeKind::IntType) return numbers.ints;
  return to_tensor(numbers);
}

UnsupportedError no_scale(std::string_view node) {
  return UnsupportedError("node ", in_quotes(node),
                          ": this version's attention derives its scale from a width that would "
                          "change, and cannot take another");
}

}  // namespace

struct ScriptEditor::Impl {
  Impl(const ScriptGraph& script, Original fate)
      : graph(script.graph), origins(script.origins), original(fate) {
    if (original == Original::kGivenUp) shared = script::shared_memory(*origins);
    for (const Weight& weight : graph.weights) {
      if (is_synthetic(script, weight.name)) synthetic[weight.name] = weight.dims;
    }
  }

  Graph graph;  // its weights are views: only constants' values are read
  std::shared_ptr<Origins> origins;
  Edits edits;
  std::unordered_map<std::string, Shape> synthetic;  // current
  std::optional<GraphEditor> shallow;                // without removed blocks
  Original original;
  std::unordered_set<const c10::StorageImpl*> shared;
  bool applied = false;
  std::optional<jit::Module> small;  // with the current tensors

  void check_open() const {
    if (applied) throw cannot_edit("after finish() only values may change");
  }

  SourceLocation operand(NodeId id, int input) const { return origins->operand(id, input); }

  Edits::Spot spot(const SourceLocation& location) const {
    return {origins->calls[location.call], location.input, location.item};
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

  /// Whether its memory may be reused. Integers are read again by later changes.
  bool may_use_up(const at::Tensor& tensor) const {
    return original == Original::kGivenUp && at::isFloatingType(tensor.scalar_type()) &&
           !shared.contains(tensor.storage().unsafeGetStorageImpl());
  }

  void empty_unread();
};

ScriptEditor::ScriptEditor(const ScriptGraph& script, Original original)
    : ScriptEditor(std::make_unique<Impl>(script, original)) {}

ScriptEditor::ScriptEditor(std::unique_ptr<Impl> impl)
    : LiteralEditor(impl->graph, *impl->origins), impl_(std::move(impl)) {}

ScriptEditor::~ScriptEditor() = default;

void ScriptEditor::bypass(std::span<const BypassedNode> nodes) {
  impl_->check_open();
  const auto& calls = impl_->origins->calls;
  for (const auto& [key, input] : nodes) {
    const SourceLocation location = impl_->operand(node(key), input);
    jit::Node* call = location.known() && location.item == kNone ? calls[location.call] : nullptr;
    const std::string op = call == nullptr ? "" : call->kind().toUnqualString();
    const bool adds = op == "add" || op == "add_" || op == "__iadd__";
    if (!adds || std::count(calls.begin(), calls.end(), call) != 1) {
      throw not_written(key, input_name(input));
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
  const NodeId id = node(consumer);
  const auto inputs = std::ssize(impl_->graph.node(id).inputs);
  if (input < 0 || input >= inputs) {
    throw ModelError("node ", in_quotes(consumer), " has no input ", input, ", only ", inputs);
  }
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
  if (!location.known() || complex) throw not_written(consumer, input_name(input));
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

void ScriptEditor::write(const SourceLocation& location, const HostTensor& value,
                         const std::string& node, const std::string& what) {
  impl_->check_open();
  if (!location.known()) throw not_written(node, what);
  const jit::Node* call = impl_->origins->calls[location.call];
  if (static_cast<size_t>(location.input) >= call->inputs().size()) throw no_scale(node);
  const c10::IValue literal = literal_of(value, call->input(location.input)->type());
  const auto [it, fresh] =
      impl_->edits.changes.try_emplace(impl_->spot(location), Change{literal, node, what, {}});
  Change& change = it->second;
  change.calls.insert(location.call);
  const bool same = fresh || (!literal.isTensor() && change.value == literal);
  if (!same) throw errors::shared_place(node, what);
}

/// The call becomes split_with_sizes(x, sizes, dim).
void ScriptEditor::write_parts(const SourceLocation& call, const std::vector<int64_t>& sizes,
                               const std::string& node) {
  impl_->check_open();
  jit::Node* splits = impl_->origins->calls[call.call];
  std::string op = splits->kind().toUnqualString();
  if (op.starts_with("unsafe_")) op.erase(0, std::string_view("unsafe_").size());
  if (op != "chunk" && op != "split" && op != "split_with_sizes" && op != "tensor_split") {
    throw not_written(node, "the sizes of the parts");
  }
  const auto [it, fresh] = impl_->edits.splits.emplace(splits, sizes);
  if (!fresh && it->second != sizes) throw errors::shared_place(node, "the sizes of the parts");
}

void ScriptEditor::note_item(const SourceLocation& location, int64_t number) {
  jit::Node* call = impl_->origins->calls[location.call];
  impl_->edits.lists[{call, location.input}].emplace(location.item, number);
}

std::optional<HostTensor> ScriptEditor::written_at(const SourceLocation& location) const {
  const auto found = impl_->edits.changes.find(impl_->spot(location));
  if (found == impl_->edits.changes.end()) return {};
  const c10::IValue& value = found->second.value;
  return value.isInt() ? HostTensor::scalar(value.toInt()) : HostTensor();
}

void ScriptEditor::update_shapes(const ChangeOf& change) {
  LiteralEditor::update_shapes(change);
  const auto changes = [&](const script::Size& size) {
    if (size.value == kNone) return false;
    const auto shapes = change(impl_->graph.value(size.value).name);
    if (!shapes || size.dim == kNone) return shapes.has_value();
    const auto dim = static_cast<size_t>(size.dim);
    return shapes->before.at(dim) != shapes->after.at(dim);
  };
  for (const script::Check& check : impl_->origins->checks) {
    if (std::ranges::any_of(check.sizes, changes)) impl_->edits.drops.insert(check.node);
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
