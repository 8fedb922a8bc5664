// x.add_(y): from here on x is the sum, for whoever holds it. Where x is a part of p, as in
// p[1:3].add_(y), so is p, put together anew. If another view is still in use, all stay whole.
#include <algorithm>

#include "parsimony/torch_io/script/interpreter_impl.h"
#include "parsimony/torch_io/script/part_impl.h"

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
  for (const ValueId v : graph_.values.ids()) {
    if (builder_.root(v) == root) values.push_back(v);
  }
  builder_.pin(op, values);
}

/// What the written value becomes, then what holds it, up to what owns the memory; fewer where one
/// of them is a view of another kind.
std::vector<std::pair<ValueId, ValueId>> Interpreter::written_through(ValueId value,
                                                                      ValueId result) {
  std::vector<std::pair<ValueId, ValueId>> written{{value, result}};
  const ValueId root = builder_.root(value);
  while (written.back().first != root) {
    const std::optional<Part> part = part_of(builder_, written.back().first);
    if (!part) break;
    written.emplace_back(part->whole, replaced(builder_, *part, written.back().second));
  }
  return written;
}

/// Whether something but those written is a view of the same memory and still in use.
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
  const ValueId root = builder_.root(value);
  const bool owned = graph_.value(root).weight == kNone && loops_ == 0;
  auto written = owned ? written_through(value, result)
                       : std::vector<std::pair<ValueId, ValueId>>{{value, result}};
  if (!owned || written.back().first != root || is_viewed_after(node, root, written)) {
    const std::string op = node->kind().toUnqualString();
    pin_aliases(op, value);
    builder_.pin(op, {result});
    describe(node, true);
    written.resize(1);
  }
  for (const auto& [before, after] : written) {
    for (auto& [name, binding] : bindings_) rename(binding, before, after);
    builder_.alias(after, written.back().second);
  }
}

}  // namespace parsimony::torch_io::script
