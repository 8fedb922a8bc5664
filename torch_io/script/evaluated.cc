// Tensors that a program computes from literals only, such as exp(arange(16) * -0.5), are evaluated
// and become weights of the Graph, so that their channels can be removed. An edit makes them
// buffers. Also measures, by running the program, sizes that no lowering covers.
#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/jit/ir/constants.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "parsimony/torch_io/script/interpreter_impl.h"
#include "parsimony/torch_io/script/run.h"
#include "parsimony/torch_io/tensor.h"

namespace parsimony::torch_io::script {

namespace jit = torch::jit;

namespace {

// A tensor of one number, such as zeros, is defined by its shape: its sizes are edited instead.
constexpr auto kSources = std::to_array<std::string_view>(
    {"arange", "bartlett_window", "blackman_window", "eye", "hamming_window", "hann_window",
     "kaiser_window", "linspace", "logspace", "tensor"});

constexpr double kMostWork = 1 << 24;
constexpr int64_t kMostElements = 1 << 20;

bool is_source(std::string_view op) {
  return std::find(kSources.begin(), kSources.end(), op) != kSources.end();
}

/// Returns a bound of the elements that a call may produce from its arguments.
double work_of(const c10::IValue& argument) {
  if (argument.isTensor()) {
    return static_cast<double>(std::max<int64_t>(1, argument.toTensor().numel()));
  }
  if (argument.isInt()) return std::max(1.0, std::abs(static_cast<double>(argument.toInt())));
  double product = 1;
  if (argument.isList()) {
    for (const c10::IValue& item : argument.toListRef()) product *= work_of(item);
  }
  return product;
}

/// arange(end, …), arange(start, end, …), arange(start, end, step, …) of real numbers
double length_of_range(const std::vector<c10::IValue>& arguments) {
  constexpr size_t kOthers = 4;  // type, layout, device, memory
  const size_t numbers = arguments.size() - std::min(arguments.size(), kOthers);
  const auto number = [&](size_t i) {
    return arguments[i].isScalar() ? arguments[i].toScalar().toDouble() : 0;
  };
  if (numbers == 0) return HUGE_VAL;
  const double start = numbers > 1 ? number(0) : 0;
  const double end = number(numbers > 1 ? 1 : 0);
  return std::abs((end - start) / (numbers > 2 ? number(2) : 1));
}

bool is_little(std::string_view op, const std::vector<c10::IValue>& arguments) {
  if (op == "arange") return length_of_range(arguments) <= static_cast<double>(kMostElements);
  double work = 1;
  for (const c10::IValue& argument : arguments) work *= work_of(argument);
  return work <= kMostWork;
}

/// Converts a constant without dimensions to a number, as libtorch's interpreter does next to a
/// tensor, so that its type does not count.
c10::IValue as_number(std::string_view op, const c10::IValue& other) {
  constexpr auto kArithmetic = std::to_array<std::string_view>({"add", "div", "mul", "sub"});
  const bool arithmetic =
      std::find(kArithmetic.begin(), kArithmetic.end(), op) != kArithmetic.end();
  if (!arithmetic || !other.isTensor() || other.toTensor().dim() != 0) return other;
  const at::Tensor number = other.toTensor().clone();
  number.unsafeGetTensorImpl()->set_wrapped_number(true);
  return number;
}

bool is_pure(const jit::Node& node) {
  const std::string_view op = node.kind().toUnqualString();
  const bool empty = op.starts_with("empty") || op.starts_with("new_empty");
  const bool writes = node.maybeSchema() == nullptr || node.schema().is_mutable();
  return node.kind().is_aten() && !empty && !writes && !node.hasSideEffects() &&
         !node.isNondeterministic();
}

/// Whether its elements differ and are all finite: a mask of infinities stays computed.
bool has_channels(const at::Tensor& tensor) {
  if (!at::isFloatingType(tensor.scalar_type())) return false;
  if (tensor.numel() < 2 || tensor.numel() > kMostElements) return false;
  const at::Tensor first = tensor.flatten()[0];
  return tensor.ne(first).any().item<bool>() && at::isfinite(tensor).all().item<bool>();
}

}  // namespace

std::optional<c10::IValue> Interpreter::literal_of(const Binding& binding,
                                                   const c10::Type& type) const {
  if (const auto* optional = type.castRaw<c10::OptionalType>()) {
    return literal_of(binding, *optional->getElementType());
  }
  switch (binding.kind) {
    case BindingKind::kNone:
      return c10::IValue();
    case BindingKind::kBool:
      return c10::IValue(binding.integer != 0);
    case BindingKind::kInt:
      if (type.kind() == c10::TypeKind::FloatType) return c10::IValue(binding.as_double());
      return c10::IValue(binding.integer);
    case BindingKind::kFloat:
      return c10::IValue(binding.number);
    case BindingKind::kString:
      return c10::IValue(binding.text);
    case BindingKind::kTensor: {
      const auto known = evaluated_.find(binding.value);
      return known == evaluated_.end() ? std::nullopt : std::optional<c10::IValue>(known->second);
    }
    case BindingKind::kList:
      break;
    default:
      return std::nullopt;
  }
  const auto* list = type.castRaw<c10::ListType>();
  if (list == nullptr) return std::nullopt;
  c10::List<c10::IValue> items(list->getElementType());
  for (const Binding& item : *binding.items) {
    auto literal = literal_of(item, *list->getElementType());
    if (!literal) return std::nullopt;
    items.push_back(*std::move(literal));
  }
  return c10::IValue(std::move(items));
}

bool Interpreter::holds_evaluated(const Binding& binding) const {
  if (binding.is(BindingKind::kTensor)) return evaluated_.contains(binding.value);
  return binding.is(BindingKind::kList) &&
         std::any_of(binding.items->begin(), binding.items->end(),
                     [this](const Binding& item) { return holds_evaluated(item); });
}

std::optional<c10::IValue> Interpreter::literal_of(const jit::Value& value) const {
  if (auto held = jit::toIValue(&value)) return std::optional<c10::IValue>(*std::move(held));
  return literal_of(of(&value), *value.type());
}

/// Returns the result of a call whose arguments are literals, or computed from such; empty for
/// others, and if memory that it shares is written to.
std::optional<c10::IValue> Interpreter::evaluated(jit::Node* node) {
  const std::string_view op = node->kind().toUnqualString();
  if (!holds_computed_ || loops_ != 0 || node->outputs().size() != 1 || !is_pure(*node)) return {};
  std::vector<c10::IValue> arguments;
  bool varied = is_source(op);
  for (const jit::Value* input : node->inputs()) {
    auto literal = literal_of(*input);
    if (!literal) return {};
    const bool second = arguments.size() == 1 && input->node()->kind() == c10::prim::Constant;
    arguments.push_back(second ? as_number(op, *literal) : *std::move(literal));
    varied = varied || holds_evaluated(of(input));
  }
  if (!varied || !is_little(op, arguments)) return {};
  if (!aliases_) aliases_ = std::make_unique<jit::AliasDb>(origins_.graph);
  if (aliases_->hasWriters(node)) return {};
  try {
    const at::NoGradGuard no_grad;
    node->getOperation()(arguments);
  } catch (const std::exception&) {
    return {};  // on a missing device, for example
  }
  return arguments.size() == 1 ? std::optional(arguments[0]) : std::nullopt;
}

/// Makes the result a weight if the call is unknown or its elements differ.
bool Interpreter::hold(jit::Node* node, const std::optional<c10::IValue>& result, bool unknown) {
  if (!result || !result->isTensor()) return false;
  const at::Tensor& tensor = result->toTensor();
  const bool possible = tensor.layout() == at::kStrided && !tensor.is_quantized() &&
                        dtype_of(tensor.scalar_type()) != DType::kUnknown &&
                        tensor.numel() <= kMostElements;
  if (!possible || !(unknown || has_channels(tensor))) return false;
  bindings_[node->output()] = tensors_.computed(node->output(), tensor);
  remember(bindings_[node->output()], *result);
  return true;
}

void Interpreter::remember(const Binding& binding, const c10::IValue& result) {
  if (binding.is(BindingKind::kTensor) && result.isTensor()) {
    evaluated_[binding.value] = result.toTensor();
  }
  if (!binding.is(BindingKind::kList) || !result.isTensorList()) return;
  const auto tensors = result.toTensorVector();
  for (size_t i = 0; i < tensors.size() && i < binding.items->size(); ++i) {
    remember((*binding.items)[i], tensors[i]);
  }
}

namespace {

/// Zeros are safe integers: they are valid indices.
at::Tensor tensor_of(const InputSpec& spec) {
  const at::ScalarType type = scalar_type_of(spec.dtype);
  if (spec.value) return at::full(spec.dims, *spec.value, type);
  return at::isFloatingType(type) ? at::rand(spec.dims).to(type) : at::zeros(spec.dims, type);
}

/// Returns the values in one run; undefined if they are not tensors.
std::vector<at::Tensor> observed(const jit::Module& module,
                                 const std::shared_ptr<jit::Graph>& graph, size_t count,
                                 const std::vector<InputSpec>& inputs) {
  std::vector<at::Tensor> tensors;
  for (const InputSpec& input : inputs) tensors.push_back(tensor_of(input));
  const std::vector<c10::IValue> results = run_graph(module, graph, tensors);
  std::vector<at::Tensor> found;
  for (size_t i = results.size() - count; i < results.size(); ++i) {
    found.push_back(results[i].isTensor() ? results[i].toTensor() : at::Tensor());
  }
  return found;
}

}  // namespace

Measurements measure(const jit::Module& module, const std::shared_ptr<jit::Graph>& graph,
                     const std::vector<jit::Value*>& values, const std::vector<InputSpec>& inputs) {
  const size_t results = graph->outputs().size();
  for (jit::Value* value : values) graph->registerOutput(value);
  const std::shared_ptr<jit::Graph> telling = graph->copy();
  while (graph->outputs().size() > results) graph->eraseOutput(graph->outputs().size() - 1);
  Measurements found;
  try {
    const std::vector<at::Tensor> a = observed(module, telling, values.size(), inputs);
    const std::vector<at::Tensor> b = observed(module, telling, values.size(), inputs);
    for (size_t i = 0; i < values.size(); ++i) {
      if (!a[i].defined() || !b[i].defined() || a[i].sizes() != b[i].sizes()) continue;
      found[values[i]] = {a[i].sizes().vec(), dtype_of(a[i].scalar_type())};
    }
  } catch (const std::exception&) {  // not measured if it does not run
    return {};
  }
  return found;
}

}  // namespace parsimony::torch_io::script
