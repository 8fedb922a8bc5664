// Control flow that is statically known is resolved. The rest, and unknown operators, become nodes
// that pin their operands.
#include <algorithm>
#include <unordered_set>

#include "parsimony/base/ranges.h"
#include "parsimony/programs/builder.h"
#include "parsimony/torch_io/script/interpreter_impl.h"

namespace parsimony::torch_io::script {

namespace jit = torch::jit;

namespace {

constexpr int64_t kMostRounds = 256;

bool raises(const jit::Block& block) {
  const auto nodes = block.nodes();
  return std::any_of(nodes.begin(), nodes.end(), [](const jit::Node* node) {
    return node->kind() == c10::prim::RaiseException;
  });
}

}  // namespace

void Interpreter::branch(jit::Node* node) {
  const Binding condition = of_input(node, 0);
  const std::vector<jit::Block*> blocks{node->blocks()[0], node->blocks()[1]};
  std::optional<bool> taken = numbers_.decided(condition);
  const bool check = raises(*blocks[0]) != raises(*blocks[1]);
  if (check && (!taken || raises(*blocks[*taken ? 0 : 1]))) taken = raises(*blocks[1]);
  if (!taken) {
    if (!branch_with_bodies(node, condition)) opaque(node);
    return;
  }
  if (condition.is(BindingKind::kNumber)) {
    if (check && node->outputs().empty()) {
      origins_.checks.push_back({node, numbers_.source_sizes(condition.value)});
    } else {
      numbers_.pin_source_sizes("If", condition.value);
      std::vector<ValueId> others;
      collect_captures(*blocks[*taken ? 1 : 0], others);
      builder_.pin("If", others);
    }
  }
  jit::Block& block = *blocks[*taken ? 0 : 1];
  follow(block);
  if (is_made_of_mode(*node->input(0))) keep_for_training(*blocks[*taken ? 1 : 0]);
  std::vector<Binding> results;
  for (const jit::Value* output : block.outputs()) results.push_back(of(output));
  bind(node, std::move(results));
}

/// Returns a number that is fixed or computed from sizes; empty if only known at run time.
std::optional<int64_t> Interpreter::count(const Binding& number) {
  if (number.is(BindingKind::kInt)) return number.integer;
  if (!number.is(BindingKind::kNumber)) return std::nullopt;
  const HostTensor* known = builder_.known(number.value);
  if (known == nullptr || known->floating() || known->count() != 1) return std::nullopt;
  return known->ints[0];
}

/// Loop(most, go_on, carried…) with block(i, carried…) -> (go_on, carried…). A loop whose end
/// depends on sizes is unrolled for these; the sizes must not change then.
void Interpreter::loop(jit::Node* node) {
  jit::Block& body = *node->blocks()[0];
  const Binding most = of_input(node, 0);
  Binding condition = of_input(node, 1);
  const std::optional<int64_t> rounds = count(most);
  const bool is_for = body.outputs()[0]->node()->kind() == c10::prim::Constant;
  if (!rounds || !numbers_.decided(condition) || (is_for && *rounds > kMostRounds)) {
    if (!loop_with_body(node)) opaque(node);
    return;
  }
  auto outside = is_for ? decltype(bindings_)() : bindings_;
  std::vector<Binding> carried;
  for (size_t i = 2; i < node->inputs().size(); ++i) carried.push_back(of_input(node, i));
  if (most.is(BindingKind::kNumber)) numbers_.pin_source_sizes("Loop", most.value);
  ++loops_;
  std::optional<bool> goes_on = numbers_.decided(condition);
  for (int64_t round = 0; round < *rounds && goes_on == true; ++round) {
    if (condition.is(BindingKind::kNumber)) numbers_.pin_source_sizes("Loop", condition.value);
    bindings_[body.inputs()[0]] = Binding::of_int(round);
    for (size_t i = 0; i < carried.size(); ++i) bindings_[body.inputs()[i + 1]] = carried[i];
    follow(body);
    for (size_t i = 0; i < carried.size(); ++i) carried[i] = of(body.outputs()[i + 1]);
    condition = of(body.outputs()[0]);
    goes_on = round < kMostRounds ? numbers_.decided(condition) : std::nullopt;
  }
  --loops_;
  if (goes_on) return bind(node, std::move(carried));
  // Only known at run time: everything that earlier iterations read is pinned.
  bindings_ = std::move(outside);
  if (!loop_with_body(node)) opaque(node);
}

namespace {

/// Whether the call, also within its blocks, modifies its operands.
bool writes(const jit::Node& node) {
  if (node.kind() == c10::prim::SetAttr || is_in_place(node.kind().toUnqualString())) return true;
  for (const jit::Block* block : node.blocks()) {
    for (const jit::Node* inner : block->nodes()) {
      if (writes(*inner)) return true;
    }
  }
  return false;
}

}  // namespace

/// Collects outer tensors that the block reads, also by attributes.
void Interpreter::collect_captures(jit::Block& block, std::vector<ValueId>& values) {
  for (jit::Node* node : block.nodes()) {
    if (node->kind() == c10::prim::GetAttr && of_input(node, 0).is(BindingKind::kObject)) {
      get_attribute(node);
      collect_tensors(of(node->output()), values);
      continue;
    }
    for (const jit::Value* input : node->inputs()) collect_tensors(of(input), values);
    for (jit::Block* inner : node->blocks()) collect_captures(*inner, values);
  }
  for (const jit::Value* output : block.outputs()) collect_tensors(of(output), values);
}

void Interpreter::opaque(jit::Node* node) {
  forget_changes(node);
  std::vector<ValueId> values;
  for (const jit::Value* input : node->inputs()) collect_tensors(of(input), values);
  for (jit::Block* block : node->blocks()) collect_captures(*block, values);
  sort_unique(values);
  const std::string op = node->kind().toUnqualString();
  if (is_in_place(op) && !node->inputs().empty() && of_input(node, 0).is(BindingKind::kTensor)) {
    pin_aliases(op, of_input(node, 0).value);
  }
  for (const ValueId value : values) numbers_.pin_source_sizes(op, value);
  builder_.begin(op);
  const auto results =
      builder_.emit_opaque(op, values, node->outputs().size(), !node->blocks().empty());
  describe(node, writes(*node));
  for (size_t i = 0; i < results.size(); ++i) {
    const bool tensor = node->output(i)->type()->isSubtypeOf(*c10::TensorType::get());
    bindings_[node->output(i)] = tensor ? Binding::tensor(results[i]) : Binding{};
    if (tensor) record_shape(node->output(i), results[i]);
  }
}

/// Sizes that cannot shrink are recorded from a run.
void Interpreter::record_shape(jit::Value* of, ValueId value) {
  const auto found = measured_.find(of);
  if (found != measured_.end()) {
    graph_.value(value).declared = found->second.dims;
    graph_.value(value).dtype = found->second.dtype;
  } else if (of->node()->owningBlock() == origins_.graph->block()) {
    unmeasured_.push_back(of);
  }
}

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

/// Handles a branch taken only in training, such as that of an auxiliary classifier. If it has its
/// own layers, which are not pruned, their operands are pinned. Other branches need no pinning:
/// they drop elements, or count batches.
void Interpreter::keep_for_training(jit::Block& block) {
  std::vector<ValueId> values;
  if (!collect_for_training(block, values)) return;
  sort_unique(values);
  for (const ValueId value : values) {
    graph_.pinned_values.emplace_back(value, "a training-only branch has layers that read it");
  }
}

/// Collects outer tensors that the block reads. Returns whether it has matrices or kernels that
/// were not read before.
bool Interpreter::collect_for_training(jit::Block& block, std::vector<ValueId>& values) {
  bool own_layers = false;
  for (jit::Node* node : block.nodes()) {
    if (node->kind() != c10::prim::GetAttr || !of_input(node, 0).is(BindingKind::kObject)) {
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

// x.add_(y): from here on x is the sum, for all references. If x is a slice of p, as in
// p[1:3].add_(y), p is reassembled. If another view is still in use, all are pinned.
namespace {

bool is_read_after(const jit::Value* value, const jit::Node* node) {
  for (const jit::Use& use : value->uses()) {
    if (use.user != node && !use.user->isBefore(node)) return true;
  }
  return false;
}

void rename(Binding& binding, ValueId from, ValueId to) {
  if (binding.is(BindingKind::kTensor) && binding.value == from) binding.value = to;
  if (!binding.is(BindingKind::kList)) return;
  for (Binding& item : *binding.items) rename(item, from, to);
}

}  // namespace

void Interpreter::pin_aliases(const std::string& op, ValueId value) {
  const ValueId root = builder_.root(value);
  std::vector<ValueId> values;
  for (const ValueId v : graph_.values.ids()) {
    if (builder_.root(v) == root) values.push_back(v);
  }
  builder_.pin(op, values);
}

/// Whether another view of the same memory, not among those written, is still in use.
bool Interpreter::is_viewed_after(const jit::Node* node, ValueId root,
                                  const std::vector<std::pair<ValueId, ValueId>>& written) const {
  std::vector<ValueId> held;
  for (const auto& [name, binding] : bindings_) {
    held.clear();
    collect_tensors(binding, held);
    for (const ValueId other : held) {
      const bool known = std::any_of(written.begin(), written.end(),
                                     [&](const auto& pair) { return pair.first == other; });
      if (!known && builder_.root(other) == root && is_read_after(name, node)) return true;
    }
  }
  return false;
}

void Interpreter::write_to(jit::Node* node, ValueId result) {
  const ValueId value = of_input(node, 0).value;
  if (programs::is_empty(builder_, value)) return;
  const ValueId root = builder_.root(value);
  if (builder_.root(result) == root) {  // squeeze_, transpose_: only the view changes
    for (auto& [name, binding] : bindings_) rename(binding, value, result);
    return;
  }
  const bool outside = first_inside_ != kNone && root.number() < first_inside_.number();
  if (outside) throw OutsideWritten();
  const bool held = graph_.value(root).weight != kNone;  // by the module: the next run reads it
  const bool owned = loops_ == 0 && (!held || (value == root && first_inside_ == kNone));
  auto written = owned ? written_through(builder_, value, result)
                       : std::vector<std::pair<ValueId, ValueId>>{{value, result}};
  if (owned && held) describe(node, true);
  if (!owned || written.back().first != root || is_viewed_after(node, root, written)) {
    const std::string op = node->kind().toUnqualString();
    pin_aliases(op, value);
    builder_.pin(op, {result});
    describe(node, true);
    written.resize(1);
  }
  for (const auto& [before, after] : written) {
    if (owned || !held) builder_.note_write(before, after);
    for (auto& [name, binding] : bindings_) rename(binding, before, after);
    builder_.alias(after, written.back().second);
  }
}

}  // namespace parsimony::torch_io::script
