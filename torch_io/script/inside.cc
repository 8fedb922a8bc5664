// Unknown operators that libtorch computes by known ones are lowered call by call.
#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/grad_mode.h>
#include <ATen/core/ivalue.h>
#include <ATen/core/operator_name.h>
#include <ATen/core/stack.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/csrc/jit/ir/constants.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "parsimony/programs/call.h"
#include "parsimony/torch_io/script/interpreter_impl.h"
#include "parsimony/torch_io/tensor.h"

namespace parsimony::torch_io::script {

namespace jit = torch::jit;

namespace {

// Operators that libtorch itself computes by others: pairwise_distance by sub, add and norm.

/// A call made by an operator.
struct InnerCall {
  std::string op;  ///< "sub"; "add_"
  std::vector<c10::IValue> arguments;
  std::vector<c10::IValue> results;
};

struct InnerCalls {
  std::vector<InnerCall> calls;  ///< in order
  std::vector<c10::IValue> results;
};

// Calls are dispatched there first while enabled, in this thread only; libtorch does not use it.
constexpr c10::DispatchKey kRecords = c10::DispatchKey::TESTING_ONLY_GenericMode;

constexpr size_t kMostCalls = 256;

struct Recording {
  const std::function<bool(const std::string&)>& is_known;
  InnerCalls made = {};
  bool outermost = true;
  bool fails = false;
};

std::string plain_name(const c10::OperatorHandle& op) {
  constexpr std::string_view kAten = "aten::";
  const std::string& name = op.operator_name().name;
  return name.starts_with(kAten) ? name.substr(kAten.size()) : name;
}

std::optional<c10::DispatchKey> body_of(const c10::OperatorHandle& op) {
  for (const auto key :
       {c10::DispatchKey::CompositeImplicitAutograd, c10::DispatchKey::CompositeExplicitAutograd}) {
    if (op.hasKernelForDispatchKey(key)) return key;
  }
  return std::nullopt;
}

class Recorder final : public c10::OperatorKernel {
 public:
  explicit Recorder(Recording& recording) : recording_(recording) {}

  void operator()(const c10::OperatorHandle& op, c10::DispatchKeySet /*keys*/,
                  torch::jit::Stack* stack) {
    const std::string name = plain_name(op);
    const bool outermost = std::exchange(recording_.outermost, false);
    const auto body = body_of(op);
    if (body && (outermost || !recording_.is_known(name))) {
      return op.callBoxedForDispatchKey(*body, *stack);
    }
    // Only writes to unshared tensors are allowed.
    const bool writes = op.schema().is_mutable();
    const bool own = writes && name.ends_with('_') && first(op, *stack).isTensor() &&
                     first(op, *stack).toTensor().storage().use_count() == 1;
    recording_.fails |= outermost || !recording_.is_known(name) || (writes && !own);
    std::vector<c10::IValue> arguments(stack->end() - std::ssize(op.schema().arguments()),
                                       stack->end());
    {
      const c10::impl::ExcludeDispatchKeyGuard itself(kRecords);
      op.callBoxed(*stack);
    }
    std::vector<c10::IValue> results(stack->end() - std::ssize(op.schema().returns()),
                                     stack->end());
    recording_.fails |= recording_.made.calls.size() >= kMostCalls;
    if (recording_.fails) return;
    recording_.made.calls.push_back({name, std::move(arguments), std::move(results)});
  }

 private:
  static const c10::IValue& first(const c10::OperatorHandle& op, const torch::jit::Stack& stack) {
    return stack[stack.size() - op.schema().arguments().size()];
  }

  Recording& recording_;
};

/// Runs the operator on these arguments and records its calls. Operators for which `is_known` is
/// true are not expanded. Empty if it is not composed of others, or reads a number from a tensor.
std::optional<InnerCalls> inner_calls(const c10::OperatorName& op, torch::jit::Stack arguments,
                                      const std::function<bool(const std::string&)>& is_known) {
  static std::mutex one_at_a_time;  // one kernel for the key and the process
  const std::lock_guard lock(one_at_a_time);
  auto& dispatcher = c10::Dispatcher::singleton();
  const auto handle = dispatcher.findSchema(op);
  if (!handle || !body_of(*handle)) return std::nullopt;
  Recording recording{is_known};
  try {
    const auto kernel = dispatcher.registerFallback(
        kRecords, c10::KernelFunction::makeFromBoxedFunctor(std::make_unique<Recorder>(recording)),
        "parsimony");
    const at::NoGradGuard no_grad;
    const c10::impl::IncludeDispatchKeyGuard records(kRecords);
    handle->callBoxed(arguments);
  } catch (const std::exception&) {
    return std::nullopt;
  }
  if (recording.fails) return std::nullopt;
  recording.made.results = std::move(arguments);
  return std::move(recording.made);
}

constexpr int64_t kMostTried = 1 << 24;  // elements for a trial run

/// Results of one operator's calls, by tensor.
class Made {
 public:
  void add(const c10::IValue& value, const Binding& binding) {
    if (value.isTensor() && binding.is(BindingKind::kTensor)) {
      bindings_[value.toTensor().unsafeGetTensorImpl()] = binding;
    } else if (value.isTensorList() && binding.is(BindingKind::kList)) {
      const auto tensors = value.toTensorVector();
      for (size_t i = 0; i < tensors.size(); ++i) add(tensors[i], binding.items->at(i));
    }
  }

  /// Returns an unknown binding for values that no call has made.
  Binding of(const c10::IValue& value) const {
    if (value.isNone()) return Binding::none();
    if (value.isBool()) return Binding::of_bool(value.toBool());
    if (value.isInt()) return Binding::of_int(value.toInt());
    if (value.isDouble()) return Binding::of_float(value.toDouble());
    if (value.isString()) return Binding::of_text(value.toStringRef());
    if (value.isTensor()) return of_tensor(value.toTensor());
    if (!value.isList()) return {};
    std::vector<Binding> items;
    for (const c10::IValue& item : value.toListRef()) items.push_back(of(item));
    return Binding::list(std::move(items));
  }

 private:
  Binding of_tensor(const at::Tensor& tensor) const {
    if (!tensor.defined()) return Binding::none();
    const auto found = bindings_.find(tensor.unsafeGetTensorImpl());
    if (found != bindings_.end()) return found->second;
    if (!tensor.unsafeGetTensorImpl()->is_wrapped_number()) return {};
    const at::Scalar number = tensor.item();  // a number next to a tensor
    return number.isIntegral(/*includeBool=*/true) ? Binding::of_int(number.toLong())
                                                   : Binding::of_float(number.toDouble());
  }

  std::unordered_map<const c10::TensorImpl*, Binding> bindings_;
};

/// Whether its integers are positions, which an edit changes or refuses.
bool moves(const std::string& op) {
  const Rule* rule = find_complex_rule(functional_name(op));
  return rule != nullptr && rule->moves;
}

/// The arguments of an operator. Numbers computed from their sizes, as for a mean, would change
/// with these, but calls do not show that.
class Given {
 public:
  explicit Given(const torch::jit::Stack& arguments) {
    for (const c10::IValue& argument : arguments) add(argument);
  }

  bool may_be_size(const c10::IValue& argument) const {
    double number = 0;
    if (argument.isInt() || argument.isDouble()) {
      number = argument.toScalar().toDouble();
    } else if (argument.isTensor() && argument.toTensor().defined() &&
               argument.toTensor().unsafeGetTensorImpl()->is_wrapped_number()) {
      number = argument.toTensor().item().toDouble();
    }
    const double size = std::abs(number) < 1 ? 1 / std::abs(number) : std::abs(number);
    if (number == 0 || numbers_.contains(number)) return false;
    const auto is_near = [](double a, double b) { return std::abs(a - b) < 1e-6 * b; };
    return std::any_of(sizes_.begin(), sizes_.end(), [&](double known) {
      return is_near(size, known) || is_near(size * size, known);
    });
  }

 private:
  void add(const c10::IValue& argument) {
    if (argument.isInt() || argument.isDouble()) numbers_.insert(argument.toScalar().toDouble());
    if (argument.isTensor()) {
      for (const int64_t size : argument.toTensor().sizes()) add_size(size);
      add_size(argument.toTensor().numel());
    }
    if (!argument.isList()) return;
    for (const c10::IValue& item : argument.toListRef()) add(item);
  }

  /// Adds the size and one less, as for an unbiased variance.
  void add_size(int64_t size) {
    for (const int64_t known : {size, size - 1}) {
      if (known > 1) sizes_.insert(static_cast<double>(known));
    }
  }

  std::set<double> numbers_;
  std::set<double> sizes_;
};

}  // namespace

/// Returns a tensor with the value's shape and type.
std::optional<at::Tensor> Interpreter::like(ValueId value) {
  const Shape* shape = builder_.shape(value);
  const DType type = graph_.value(value).dtype;
  if (shape == nullptr || builder_.is_complex(value) || type == DType::kUnknown) return {};
  if (element_count(*shape) > kMostTried) return {};
  const at::ScalarType scalar = scalar_type_of(type);
  return is_floating(type) ? at::ones(*shape, scalar) : at::zeros(*shape, scalar);
}

std::optional<c10::IValue> Interpreter::argument_like(const Binding& binding, const c10::Type& type,
                                                      const c10::IValue* held) {
  if (held != nullptr && !held->isTensor()) return *held;
  if (!binding.is(BindingKind::kTensor) && !binding.is(BindingKind::kList)) {
    return literal_of(binding, type);
  }
  if (binding.is(BindingKind::kTensor)) {
    auto tensor = like(binding.value);
    return tensor ? std::optional<c10::IValue>(*tensor) : std::nullopt;
  }
  const auto* list = type.castRaw<c10::ListType>();
  if (list == nullptr) return std::nullopt;
  c10::List<c10::IValue> items(list->getElementType());
  for (const Binding& item : *binding.items) {
    auto one = argument_like(item, *list->getElementType(), nullptr);
    if (!one) return std::nullopt;
    items.push_back(*std::move(one));
  }
  return c10::IValue(std::move(items));
}

/// Replaces the call by those that libtorch makes for it.
bool Interpreter::inline_call(jit::Node* node, std::vector<Binding>& results) {
  const auto* schema = node->kind().is_aten() ? node->maybeSchema() : nullptr;
  if (schema == nullptr || schema->is_mutable()) return false;
  Made made;
  torch::jit::Stack arguments;
  for (const jit::Value* input : node->inputs()) {
    const auto held = jit::toIValue(input);
    auto argument = argument_like(of(input), *input->type(), held ? &*held : nullptr);
    if (!argument) return false;
    made.add(*argument, of(input));
    arguments.push_back(*std::move(argument));
  }
  const Given given(arguments);
  const auto is_known = [](const std::string& op) {
    return find_rule(functional_name(op)) != nullptr;
  };
  const auto inside = inner_calls(schema->operator_name(), std::move(arguments), is_known);
  if (!inside || inside->results.size() != node->outputs().size()) return false;
  const auto mark = builder_.mark();
  try {
    for (const InnerCall& call : inside->calls) {
      std::vector<Binding> bindings;
      for (const c10::IValue& argument : call.arguments) {
        if (!moves(call.op) && given.may_be_size(argument)) throw NotLowered();
        bindings.push_back(made.of(argument));
      }
      const Rule& rule = *find_rule(functional_name(call.op));
      Call lowered(builder_, kNone, rule, std::move(bindings), call.results.size());
      rule.lower(lowered);
      if (!lowered.settled().empty()) throw NotLowered();
      for (size_t i = 0; i < call.results.size(); ++i) {
        made.add(call.results[i], lowered.results[i]);
      }
    }
    // Values to be kept as written cannot be represented within an operator.
    const auto now = builder_.mark();
    if (now.frozen != mark.frozen || now.size_literals != mark.size_literals) throw NotLowered();
  } catch (const NotLowered&) {
    builder_.roll_back(mark);
    return false;
  }
  for (const c10::IValue& result : inside->results) results.push_back(made.of(result));
  const auto is_tensor = [](const Binding& result) { return result.is(BindingKind::kTensor); };
  if (std::all_of(results.begin(), results.end(), is_tensor)) return true;
  builder_.roll_back(mark);
  results.clear();
  return false;
}

}  // namespace parsimony::torch_io::script
