// Unknown operators that libtorch computes by known ones are lowered call by call.
#include <ATen/ATen.h>
#include <torch/csrc/jit/ir/constants.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <unordered_map>

#include "parsimony/torch_io/script/call_impl.h"
#include "parsimony/torch_io/script/composite_impl.h"
#include "parsimony/torch_io/script/interpreter_impl.h"
#include "parsimony/torch_io/tensor.h"

namespace parsimony::torch_io::script {

namespace jit = torch::jit;

namespace {

constexpr int64_t kMostTried = 1 << 24;  // that an operator is tried on

/// What the calls of one operator have made, by its tensors.
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

  /// Unknown for what none of the calls has made.
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
    const at::Scalar number = tensor.item();  // a number that was written beside a tensor
    return number.isIntegral(/*includeBool=*/true) ? Binding::of_int(number.toLong())
                                                   : Binding::of_float(number.toDouble());
  }

  std::unordered_map<const c10::TensorImpl*, Binding> bindings_;
};

/// Then integers are places, which an edit changes or refuses.
bool moves(const std::string& op) {
  const Rule* rule = find_complex_rule(functional_name(op));
  return rule != nullptr && rule->moves;
}

/// The arguments of an operator. A number that it makes of their sizes, as for a mean, would change
/// with these, which the calls do not say.
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

  /// And one less, as for an unbiased variance.
  void add_size(int64_t size) {
    for (const int64_t known : {size, size - 1}) {
      if (known > 1) sizes_.insert(static_cast<double>(known));
    }
  }

  std::set<double> numbers_;
  std::set<double> sizes_;
};

}  // namespace

/// A tensor of the shape and type that the value has.
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

/// The call as those that libtorch makes in its place.
bool Interpreter::look_inside(jit::Node* node, std::vector<Binding>& results) {
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
    // What is to stay as it was written has no place within an operator.
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
