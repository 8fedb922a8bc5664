// Data-dependent control flow: If and Loop, with the blocks as their bodies. Blocks that change
// lists, attributes or tensors outside of them cannot be expressed.
#include <algorithm>
#include <utility>

#include "parsimony/torch_io/script/interpreter_impl.h"

namespace parsimony::torch_io::script {

namespace jit = torch::jit;

namespace {

bool is_inside(const jit::Block* block, const jit::Block& around) {
  while (block != nullptr && block != &around) {
    block = block->owningNode() == nullptr ? nullptr : block->owningNode()->owningBlock();
  }
  return block != nullptr;
}

bool changes_outside(const jit::Block& block, const jit::Block& around) {
  return std::ranges::any_of(block.nodes(), [&](const jit::Node* node) {
    if (node->kind() == c10::prim::SetAttr) return true;
    if (changes_list(*node) && !is_inside(node->input(0)->node()->owningBlock(), around)) {
      return true;
    }
    return std::ranges::any_of(
        node->blocks(), [&](const jit::Block* inner) { return changes_outside(*inner, around); });
  });
}

/// Lists the tensors and numbers of a value in order. Returns false if there is anything else.
bool take_apart(const Builder& builder, const Binding& binding, std::vector<Binding>& leaves) {
  if (binding.is(BindingKind::kTensor) || binding.is_number()) {
    leaves.push_back(binding);
    return binding.is_number() || !builder.is_complex(binding.value);
  }
  if (!binding.is(BindingKind::kList)) return binding.is(BindingKind::kNone);
  return std::ranges::all_of(
      *binding.items, [&](const Binding& item) { return take_apart(builder, item, leaves); });
}

/// Returns a value of the same structure with other tensors and numbers.
Binding put_together(const Binding& like, std::vector<ValueId>::const_iterator& leaf) {
  if (like.is(BindingKind::kTensor)) return Binding::tensor(*leaf++);
  if (like.is_number()) return Binding::run_time(*leaf++);
  if (!like.is(BindingKind::kList)) return like;
  std::vector<Binding> items;
  for (const Binding& item : *like.items) items.push_back(put_together(item, leaf));
  Binding list = Binding::list(std::move(items));
  list.text = like.text;
  return list;
}

bool have_one_form(const Binding& a, const Binding& b) {
  if (a.is_number()) return b.is_number();
  if (a.kind != b.kind) return false;
  return !a.is(BindingKind::kList) || std::ranges::equal(*a.items, *b.items, have_one_form);
}

}  // namespace

/// Returns the values of the leaves; pins them if they are sizes.
std::vector<ValueId> Interpreter::values_of(const std::string& op,
                                            const std::vector<Binding>& all) {
  std::vector<ValueId> values;
  for (const Binding& binding : all) {
    values.push_back(binding.is(BindingKind::kTensor) ? binding.value
                                                      : numbers_.run_time(binding).value);
    if (binding.is(BindingKind::kNumber)) numbers_.pin_source_sizes(op, binding.value);
  }
  return values;
}

/// Returns the results of the block with their structure. Empty if a body cannot return them.
std::optional<std::vector<Binding>> Interpreter::follow_body(jit::Block& block, BodyId body) {
  const BodyId around = builder_.enter(body);
  const ValueId before = std::exchange(first_inside_, graph_.values.next_id());
  const int loops = std::exchange(loops_, 0);  // results belong to one iteration
  bool fits = true;
  try {
    follow(block);
  } catch (const OutsideWritten&) {
    fits = false;
  }
  loops_ = loops;
  std::vector<Binding> results;
  std::vector<Binding> leaves;
  for (const jit::Value* output : block.outputs()) {
    results.push_back(of(output));
    fits = fits && take_apart(builder_, results.back(), leaves);
  }
  if (fits) builder_.finish_body(body, values_of("return", leaves));
  first_inside_ = before;
  builder_.enter(around);
  return fits ? std::optional(std::move(results)) : std::nullopt;
}

bool Interpreter::branch_with_bodies(jit::Node* node, const Binding& condition) {
  const auto blocks = node->blocks();
  const bool known = condition.is(BindingKind::kNumber);
  if (!known ||
      std::ranges::any_of(blocks, [](const auto* b) { return changes_outside(*b, *b); })) {
    return false;
  }
  auto outside = bindings_;
  const std::vector<BodyId> bodies = {builder_.body("then_branch"), builder_.body("else_branch")};
  const auto first = follow_body(*blocks[0], bodies[0]);
  const auto second = first ? follow_body(*blocks[1], bodies[1]) : std::nullopt;
  if (!second || !std::ranges::equal(*first, *second, have_one_form)) {
    bindings_ = std::move(outside);
    for (const BodyId b : bodies) graph_.bodies[b].outputs.clear();
    return false;
  }
  bind_results(node, builder_.emit_control("If", {condition.value}, bodies), *first);
  describe(node, false);
  return true;
}

/// In TorchScript the body takes the iteration number and the states, in ONNX also the condition in
/// between.
bool Interpreter::loop_with_body(jit::Node* node) {
  jit::Block& block = *node->blocks()[0];
  const Binding most = of_input(node, 0);
  const Binding condition = of_input(node, 1);
  if (!most.is_number() || !condition.is_number() || changes_outside(block, block)) return false;
  std::vector<Binding> states;
  std::vector<Binding> leaves = {most, condition};
  for (size_t i = 2; i < node->inputs().size(); ++i) {
    states.push_back(of_input(node, i));
    if (!take_apart(builder_, states.back(), leaves)) return false;
  }
  builder_.begin("Loop");
  const std::vector<ValueId> given = values_of("Loop", leaves);
  auto outside = bindings_;
  const BodyId body = builder_.body("body");
  std::vector<ValueId> inputs = {builder_.body_input(given[0], Shape())};
  for (size_t i = 1; i < given.size(); ++i) {
    const Shape* shape = builder_.shape(given[i]);
    inputs.push_back(builder_.body_input(given[i], shape ? std::optional(*shape) : std::nullopt));
  }
  graph_.bodies[body].inputs = inputs;
  bindings_[block.inputs()[0]] = Binding::run_time(inputs[0]);
  auto leaf = inputs.cbegin() + 2;
  for (size_t i = 0; i < states.size(); ++i) {
    bindings_[block.inputs()[i + 1]] = put_together(states[i], leaf);
  }
  const auto results = follow_body(block, body);
  const bool fits =
      results && (*results)[0].is_number() &&
      std::equal(results->begin() + 1, results->end(), states.begin(), states.end(), have_one_form);
  for (const ValueId v : inputs) graph_.value(v).declared.reset();
  if (!fits) {
    bindings_ = std::move(outside);
    graph_.bodies[body].inputs.clear();
    graph_.bodies[body].outputs.clear();
    return false;
  }
  bind_results(node, builder_.emit_control("Loop", given, {body}), states);
  describe(node, false);
  return true;
}

void Interpreter::bind_results(jit::Node* node, const std::vector<ValueId>& values,
                               const std::vector<Binding>& forms) {
  std::vector<Binding> results;
  auto leaf = values.cbegin();
  for (const Binding& form : forms) results.push_back(put_together(form, leaf));
  bind(node, std::move(results));
}

}  // namespace parsimony::torch_io::script
