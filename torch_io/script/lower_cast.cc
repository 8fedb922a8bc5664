// What leaves the numbers as they are, changes their type, or makes them from nothing.
#include "parsimony/torch_io/script/lowerings_impl.h"

namespace parsimony::torch_io::script {
namespace {

// at::ScalarType as TorchScript writes it, and the number of the same type in ONNX.
constexpr int64_t kTorchLong = 4;
constexpr int64_t kTorchBool = 11;
constexpr int64_t kTorchFloat = 6;

struct Type {
  DType dtype;
  int64_t onnx;
};

/// @throws NotLowered for complex and quantised types
Type type_of(int64_t torch) {
  switch (torch) {
    case 0:
      return {DType::kUInt8, 2};
    case 1:
      return {DType::kInt8, 3};
    case 2:
      return {DType::kInt16, 5};
    case 3:
      return {DType::kInt32, 6};
    case kTorchLong:
      return {DType::kInt64, 7};
    case 5:
      return {DType::kFloat16, 10};
    case kTorchFloat:
      return {DType::kFloat32, 1};
    case 7:
      return {DType::kFloat64, 11};
    case kTorchBool:
      return {DType::kBool, 9};
    case 15:
      return {DType::kBFloat16, 16};
    default:
      throw NotLowered();
  }
}

void cast(Call& call, int64_t torch_type) {
  const Operand x = call.tensor(0);
  const Type type = type_of(torch_type);
  Graph& graph = call.out.graph();
  if (graph.value(x.value).dtype == type.dtype) return call.give(x.value);
  const ValueId result = call.out.emit("Cast", {x}, {{"to", type.onnx}});
  graph.value(result).dtype = type.dtype;
  call.give_view(result, x.value);
}

/// A tensor of one number, of the shape in operand `sizes`.
void filled(Call& call, ValueId sizes, const Binding& number, DType dtype) {
  call.require(number.fixed_number());
  Attributes attributes;
  if (is_floating(dtype)) {
    attributes.with("value", std::vector<double>{number.as_double()});
  } else {
    attributes.with("value", std::vector<int64_t>{static_cast<int64_t>(number.as_double())});
  }
  const ValueId result = call.out.emit("ConstantOfShape", {{sizes}}, std::move(attributes));
  call.out.graph().value(result).dtype = dtype;
  call.give(result);
}

void filled(Call& call, ValueId sizes, const Binding& number, const Binding& type) {
  int64_t torch_type = type.is(Kind::kInt) ? type.integer : kTorchFloat;
  if (!type.is(Kind::kInt) && number.is(Kind::kInt) && call.op.starts_with("full")) {
    torch_type = kTorchLong;
  }
  filled(call, sizes, number, type_of(torch_type).dtype);
}

/// "new_zeros" and "zeros_like" end or begin with what they are filled with.
Binding filling(const Call& call) {
  if (call.op.find("ones") != std::string::npos) return Binding::of_float(1);
  return Binding::of_float(0);
}

}  // namespace

/// dropout in evaluation mode, detach: the tensor itself
void lower_same(Call& call) { call.give(call.tensor(0).value); }

/// clone: the same numbers in other memory
void lower_copy(Call& call) { call.give(call.out.emit("Identity", {call.tensor(0)})); }

/// contiguous: the tensor itself or a copy, as the case may be
void lower_maybe_copy(Call& call) {
  const Operand x = call.tensor(0);
  call.give_view(call.out.emit("Identity", {x}), x.value);
}

/// _cast_Long(x, non_blocking)
void lower_cast(Call& call) {
  const std::string type = call.op.substr(call.op.rfind('_') + 1);
  const int64_t number = type == "Long"     ? kTorchLong
                         : type == "Int"    ? 3
                         : type == "Half"   ? 5
                         : type == "Double" ? 7
                                            : kTorchFloat;
  cast(call, number);
}

/// to(x, dtype, …), to(x, device, dtype, …), to(x, device, …), to(x, other, …)
void lower_to(Call& call) {
  if (call.arg(1).is(Kind::kInt)) return cast(call, call.integer(1));
  // A device, and after it a type. A flag is no type.
  if (call.arg(2).is(Kind::kInt)) return cast(call, call.integer(2));
  if (call.arg(1).is(Kind::kTensor)) return lower_type_as(call);
  call.give(call.tensor(0).value);
}

/// The type of another tensor: mostly the one that it has.
void lower_type_as(Call& call) {
  const Graph& graph = call.out.graph();
  const DType from = graph.value(call.tensor(0).value).dtype;
  const DType to = graph.value(call.tensor(1).value).dtype;
  call.require(from == to || (is_floating(from) && is_floating(to)));
  call.give(call.tensor(0).value);
}

/// zeros(sizes, dtype, …), ones(…), full(sizes, number, dtype, …), new_zeros(x, sizes, dtype, …),
/// new_full(x, sizes, number, dtype, …)
void lower_full(Call& call) {
  const size_t at = call.op.starts_with("new_") ? 1 : 0;
  const ValueId sizes = call.out.list_of(call.elements(at));
  const bool with_number = call.op.ends_with("full");
  filled(call, sizes, with_number ? call.arg(at + 1) : filling(call),
         call.arg(at + (with_number ? 2 : 1)));
}

/// zeros_like(x, dtype, …), ones_like(…), full_like(x, number, dtype, …)
void lower_full_like(Call& call) {
  const ValueId sizes = call.out.emit("Shape", {call.tensor(0)});
  const bool with_number = call.op == "full_like";
  filled(call, sizes, with_number ? call.arg(1) : filling(call), call.arg(with_number ? 2 : 1));
}

/// fill(x, number), zero(x): x gives its shape and its type. Zeros are a product, for which what is
/// absent stays zero.
void lower_fill(Call& call) {
  const Operand x = call.tensor(0);
  Binding number = call.op == "zero" ? Binding::of_float(0) : call.arg(1);
  if (number.is(Kind::kTensor)) {
    const HostTensor* known = call.out.known(number.value);
    call.require(known != nullptr && known->count() == 1);
    number = Binding::of_float(known->number(0));
  }
  // Behind an input of which nothing tells the type it is not known; such inputs count as float32.
  const DType known = call.out.graph().value(x.value).dtype;
  const DType dtype = known == DType::kUnknown ? DType::kFloat32 : known;
  call.require(number.fixed_number());
  if (number.as_double() == 0 && (is_floating(dtype) || dtype == DType::kInt64)) {
    const ValueId zero = is_floating(dtype) ? call.out.number(0) : call.out.integer(0);
    return call.give(call.out.emit("Mul", {x, {zero}}));
  }
  filled(call, call.out.emit("Shape", {x}), number, dtype);
}

/// copy(x, from): from, stretched to the shape of x, in its type
void lower_copy_into(Call& call) {
  const Operand x = call.tensor(0);
  const Operand from = call.tensor(1);
  const Graph& graph = call.out.graph();
  call.require(graph.value(x.value).dtype == graph.value(from.value).dtype);
  if (call.shape(x.value) == call.shape(from.value)) {
    return call.give(call.out.emit("Identity", {from}));
  }
  call.give(call.out.emit("Expand", {from, {call.out.emit("Shape", {x})}}));
}

/// arange(end, dtype, …), arange(start, end, dtype, …), arange(start, end, step, dtype, …); always
/// dtype, layout, device and pin_memory at the end.
void lower_arange(Call& call) {
  call.require(call.size() >= 5 && call.size() <= 7);
  const size_t numbers = call.size() - 4;
  call.require(call.none(numbers) || call.integer(numbers) == kTorchLong);
  const auto number = [&](size_t i) -> Operand {
    const Element element = call.element(i);
    return {element.run_time == kNone ? call.out.integer(element.fixed) : element.run_time};
  };
  const Operand start = numbers > 1 ? number(0) : Operand{call.out.integer(0)};
  const Operand end = number(numbers > 1 ? 1 : 0);
  const Operand step = numbers > 2 ? number(2) : Operand{call.out.integer(1)};
  const ValueId result = call.out.emit("Range", {start, end, step});
  call.out.graph().value(result).dtype = DType::kInt64;
  call.give(result);
}

}  // namespace parsimony::torch_io::script
