// Casts, copies, and tensors made from scratch.
#include <algorithm>
#include <cmath>
#include <utility>

#include "parsimony/graph/operators/schema.h"
#include "parsimony/programs/builder.h"
#include "parsimony/programs/call.h"
#include "parsimony/programs/element_types.h"
#include "parsimony/programs/sources.h"

namespace parsimony::programs {
namespace {

// c10::ScalarType, as programs write it.
constexpr int64_t kTorchFloat = 6;
constexpr int64_t kTorchComplex = 9;

constexpr int64_t kMostNumbers = 1 << 20;  // of a constant created here

/// @throws NotLowered for complex and quantised types
DType type_of(int64_t torch) {
  const DType type = dtype_of_torch(torch);
  if (type == DType::kUnknown) throw NotLowered();
  return type;
}

void cast(Call& call, const Operand& x, DType type) {
  if (call.out.graph().value(x.value).dtype == type) return call.set_result(x.value);
  call.set_view(call.out.cast(x, type), x.value);
}

/// Returns the type; unknown ones of inputs count as float32.
DType known_type(const Call& call, ValueId value) {
  const DType known = call.out.graph().value(value).dtype;
  return known == DType::kUnknown ? DType::kFloat32 : known;
}

/// Whether the number is computed, from a size for example.
bool is_computed(const Binding& number) {
  return number.is(BindingKind::kTensor) || number.is(BindingKind::kNumber);
}

/// Fills a tensor with one number; its shape is operand `sizes`.
void filled(Call& call, ValueId sizes, const Binding& number, DType dtype) {
  if (is_computed(number)) {
    call.require(known_type(call, number.value) == dtype);
    return call.set_node("Expand", {{number.value}, {sizes}});
  }
  call.require(number.fixed_number());
  call.set_result(filled_with(call, sizes, number.as_double(), dtype));
}

/// Returns the type that an argument names, else `other`.
DType type_or(const Binding& type, DType other) {
  return type.is(BindingKind::kInt) ? type_of(type.integer) : other;
}

/// Returns the fill value by the operator's name: "new_zeros", "zeros_like".
Binding filling(const Call& call) {
  if (call.op.find("ones") != std::string::npos) return Binding::of_float(1);
  return Binding::of_float(0);
}

/// Emits real and imaginary part of sizes at argument `at`.
void complex_zeros(Call& call, size_t at) {
  call.require(call.op.ends_with("zeros"));
  std::vector<Element> sizes = call.elements(at);
  sizes.push_back({2});
  filled(call, call.out.list_of(sizes), Binding::of_float(0), DType::kFloat32);
  call.set_complex(call.results[0].value);
}

/// Whether it is not a tensor of the module, whose numbers may change.
bool is_of_program(const Call& call, ValueId value) {
  const WeightId weight = call.out.graph().value(value).weight;
  if (weight == kNone) return false;
  const std::string& name = call.out.graph().weight(weight).name;
  const Sources& sources = call.out.sources();
  return sources.synthetic.contains(name) || sources.literals.contains(name);
}

/// Is it a tensor of the module, or one that the program made of sizes alone, or a part of one?
bool is_own_memory(const Call& call, ValueId value) {
  const ValueId root = call.out.root(value);
  if (call.out.graph().value(root).weight != kNone) return !is_of_program(call, root);
  const Node* node = call.out.producer(root);
  return node != nullptr && has_trait(*node, kFills);
}

}  // namespace

ValueId filled_with(Call& call, ValueId sizes, double number, DType dtype) {
  Attributes attributes;
  if (is_floating(dtype)) {
    attributes.with("value", std::vector<double>{number});
  } else {
    attributes.with("value", std::vector<int64_t>{static_cast<int64_t>(number)});
  }
  attributes.with("value.dtype", std::string(name_of(dtype)));
  const ValueId result = call.out.emit("ConstantOfShape", {{sizes}}, std::move(attributes));
  call.out.graph().value(result).dtype = dtype;
  return result;
}

/// dropout in evaluation mode, detach: the tensor itself
void lower_same(Call& call) { call.set_result(call.tensor(0).value); }

/// clone: a copy in separate memory
void lower_copy(Call& call) { call.set_node("Identity", {call.tensor(0)}); }

/// contiguous: the tensor itself or a copy, depending on its layout
void lower_maybe_copy(Call& call) {
  const Operand x = call.tensor(0);
  call.set_view(call.out.emit("Identity", {x}), x.value);
}

/// _cast_Long(x, non_blocking)
void lower_cast(Call& call) {
  const std::string name = call.op.substr(call.op.rfind('_') + 1);
  const DType type = name == "Long"     ? DType::kInt64
                     : name == "Int"    ? DType::kInt32
                     : name == "Half"   ? DType::kFloat16
                     : name == "Double" ? DType::kFloat64
                                        : DType::kFloat32;
  cast(call, call.tensor(0), type);
}

/// to(x, dtype, …), to(x, device, dtype, …), to(x, device, …), to(x, other, …), _to_copy(x, dtype,
/// …)
void lower_to(Call& call) {
  if (call.arg(1).is(BindingKind::kInt))
    return cast(call, call.tensor(0), type_of(call.integer(1)));
  // A device, then possibly a type. A flag is not a type.
  if (call.arg(2).is(BindingKind::kInt))
    return cast(call, call.tensor(0), type_of(call.integer(2)));
  if (call.arg(1).is(BindingKind::kTensor)) return lower_type_as(call);
  call.set_result(call.tensor(0).value);
}

/// to(x, …) of complex numbers, which stay complex
void lower_complex_to(Call& call) {
  for (const size_t i : {1, 2}) {
    call.require(!call.arg(i).is(BindingKind::kInt) || call.integer(i) == kTorchComplex);
  }
  call.set_result(call.tensor(0).value);
}

/// type_as(x, other): mostly x's own type
void lower_type_as(Call& call) {
  const Operand x = call.tensor(0);
  const DType to = known_type(call, call.tensor(1).value);
  if (is_floating(known_type(call, x.value)) && is_floating(to)) return call.set_result(x.value);
  cast(call, x, to);
}

/// zeros(sizes, dtype, …), ones(…), full(sizes, number, dtype, …), new_zeros(x, sizes, dtype, …),
/// new_full(x, sizes, number, dtype, …); empty(sizes, dtype, …), for which any numbers will do
void lower_full(Call& call) {
  const size_t at = call.op.starts_with("new_") ? 1 : 0;
  const ValueId sizes = call.out.list_of(call.elements(at));
  const bool with_number = call.op.ends_with("full");
  const Binding number = with_number ? call.arg(at + 1) : filling(call);
  const bool with_order = call.op == "empty_permuted";  // of the dimensions in memory
  const Binding& type = call.arg(at + (with_number || with_order ? 2 : 1));
  if (type.is(BindingKind::kInt) && type.integer == kTorchComplex) return complex_zeros(call, at);
  DType other = with_number && number.is(BindingKind::kInt) ? DType::kInt64 : DType::kFloat32;
  if (is_computed(number)) other = known_type(call, number.value);
  if (at == 1) other = known_type(call, call.tensor(0).value);
  filled(call, sizes, number, type_or(type, other));
}

/// zeros_like(x, dtype, …), ones_like(…), full_like(x, number, dtype, …)
void lower_full_like(Call& call) {
  const ValueId sizes = sizes_of(call.out, call.tensor(0).value);
  const bool with_number = call.op == "full_like";
  filled(call, sizes, with_number ? call.arg(1) : filling(call),
         type_or(call.arg(with_number ? 2 : 1), known_type(call, call.tensor(0).value)));
}

/// eye(n, dtype, layout, device, pin_memory), eye(n, m, dtype, …)
void lower_eye(Call& call) {
  constexpr size_t kOfSquare = 5;
  const bool square = call.size() == kOfSquare;
  const std::vector<Element> sizes{call.element(0), call.element(square ? 0 : 1)};
  const DType dtype = type_or(call.arg(square ? 1 : 2), DType::kFloat32);
  call.set_node("EyeLike", {{filled_with(call, call.out.list_of(sizes), 0, dtype)}});
}

/// rand(sizes, dtype, …), rand_like(x, dtype, …)
void lower_draw(Call& call) {
  ValueId like = call.op.ends_with("_like") ? call.tensor(0).value : ValueId();
  const DType own = like == kNone ? DType::kFloat32 : known_type(call, like);
  call.require(type_or(call.arg(1), own) == own);
  if (like == kNone) like = filled_with(call, call.out.list_of(call.elements(0)), 0, own);
  call.set_node(call.onnx, {{like}});
}

/// scalar_tensor(number, dtype, …), tensor(number, dtype, …)
void lower_scalar_tensor(Call& call) {
  const Binding& number = call.arg(0);
  if (number.is(BindingKind::kNumber)) {  // computed from sizes
    const DType own = call.op == "tensor" ? known_type(call, number.value) : DType::kFloat32;
    return cast(call, Operand{number.value}, type_or(call.arg(1), own));
  }
  call.require(number.fixed_number());
  const bool whole = call.op == "tensor" && !call.arg(0).is(BindingKind::kFloat);
  const DType dtype = type_or(call.arg(1), whole ? DType::kInt64 : DType::kFloat32);
  call.require(dtype == DType::kFloat32 || dtype == DType::kInt64);
  call.set_result(dtype == DType::kInt64 ? call.out.integer(static_cast<int64_t>(call.number(0)))
                                         : call.out.number(call.number(0)));
}

/// fill(x, number), zero(x): with the shape and type of x. Zeros are a product, so absent elements
/// stay zero.
void lower_fill(Call& call) {
  const Operand x = call.tensor(0);
  const Binding number = Binding::of_float(call.op == "zero" ? 0 : call.single(1));
  const DType dtype = known_type(call, x.value);
  if (number.as_double() == 0 && (is_floating(dtype) || dtype == DType::kInt64)) {
    const ValueId zero = is_floating(dtype) ? call.out.number(0) : call.out.integer(0);
    return call.set_node("Mul", {x, {zero}});
  }
  filled(call, sizes_of(call.out, x.value), number, dtype);
}

/// copy(x, from): `from`, expanded to the shape of x, in its type
void lower_copy_into(Call& call) {
  const Operand x = call.tensor(0);
  const Operand from = call.tensor(1);
  const Graph& graph = call.out.graph();
  call.require(graph.value(x.value).dtype == graph.value(from.value).dtype);
  if (call.shape(x.value) == call.shape(from.value)) {
    if (!is_own_memory(call, x.value)) {  // its size is read, as what made x must follow it
      return call.set_node("Expand", {from, {sizes_of(call.out, x.value)}});
    }
    return call.set_result(written_over(call.out, x.value, from.value));
  }
  const ValueId sizes = sizes_of(call.out, x.value);
  if (call.rank(from.value) != 0 || !is_of_program(call, from.value)) {
    return call.set_node("Expand", {from, {sizes}});
  }
  call.set_result(filled_with(call, sizes, call.single(1), graph.value(x.value).dtype));
}

namespace {

/// Sets numbers that the program computes and that no edit can change.
void set_fixed(Call& call, const HostTensor& numbers) {
  const ValueId value = call.out.constant(numbers);
  call.out.graph().pinned_values.emplace_back(value, "the program computes it");
  call.set_result(value);
}

/// Evaluates arange with real numbers: all of them are fixed.
void real_range(Call& call, size_t numbers) {
  const double start = numbers > 1 ? call.number(0) : 0;
  const double end = call.number(numbers > 1 ? 1 : 0);
  const double step = numbers > 2 ? call.number(2) : 1;
  const double count = std::ceil((end - start) / step);
  call.require(count >= 0 && count <= kMostNumbers);
  call.require(call.integer(numbers, kTorchFloat) == kTorchFloat);
  HostTensor all{
      .dtype = DType::kFloat32, .dims = {static_cast<int64_t>(count)}, .ints = {}, .floats = {}};
  for (int64_t i = 0; i < all.dims[0]; ++i) {
    all.floats.push_back(static_cast<float>(start + step * static_cast<double>(i)));
  }
  set_fixed(call, all);
}

}  // namespace

/// arange(end, dtype, …), arange(start, end, dtype, …), arange(start, end, step, dtype, …); always
/// with dtype, layout, device and pin_memory at the end.
void lower_arange(Call& call) {
  call.require(call.size() >= 5 && call.size() <= 7);
  const size_t numbers = call.size() - 4;
  const auto is_real = [&](size_t i) { return call.arg(i).is(BindingKind::kFloat); };
  const auto is_whole = [&](size_t i) {
    return !is_real(i) || call.number(i) == std::trunc(call.number(i));
  };
  const bool whole = is_whole(0) && (numbers < 2 || is_whole(1)) && (numbers < 3 || is_whole(2));
  const bool real = is_real(0) || (numbers > 1 && is_real(1)) || (numbers > 2 && is_real(2));
  const DType type = type_or(call.arg(numbers), real ? DType::kFloat32 : DType::kInt64);
  if (real && (is_floating(type) || !whole)) return real_range(call, numbers);
  const auto number = [&](size_t i) -> Operand {
    if (is_real(i)) return {call.out.integer(static_cast<int64_t>(call.number(i)))};
    const Element element = call.element(i);
    return {element.run_time == kNone ? call.out.integer(element.fixed) : element.run_time};
  };
  const Operand start = numbers > 1 ? number(0) : Operand{call.out.integer(0)};
  const Operand end = number(numbers > 1 ? 1 : 0);
  const Operand step = numbers > 2 ? number(2) : Operand{call.out.integer(1)};
  const ValueId result = call.out.emit("Range", {start, end, step});
  call.out.graph().value(result).dtype = DType::kInt64;
  call.set_result(type == DType::kInt64 ? result : call.out.cast(result, type));
}

/// linspace(start, end, steps, dtype, …): computed from both ends, like libtorch
void lower_linspace(Call& call) {
  const auto start = static_cast<float>(call.number(0));
  const auto end = static_cast<float>(call.number(1));
  const int64_t steps = call.integer(2);
  call.require(steps > 0 && steps <= kMostNumbers && call.integer(3, kTorchFloat) == kTorchFloat);
  const float step = steps > 1 ? (end - start) / static_cast<float>(steps - 1) : 0;
  HostTensor numbers{.dtype = DType::kFloat32, .dims = {steps}, .ints = {}, .floats = {}};
  for (int64_t i = 0; i < steps; ++i) {
    const int64_t left = steps - 1 - i;
    numbers.floats.push_back(i < steps / 2 || steps == 1 ? start + step * static_cast<float>(i)
                                                         : end - step * static_cast<float>(left));
  }
  set_fixed(call, numbers);
}

}  // namespace parsimony::programs
