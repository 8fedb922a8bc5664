#include "parsimony/programs/call.h"

#include <algorithm>

namespace parsimony::programs {

const Binding& Call::arg(size_t i) const {
  static const Binding absent = Binding::none();
  return i < args.size() ? args[i] : absent;
}

Operand Call::tensor(size_t i) const {
  require(arg(i).is(BindingKind::kTensor));
  return {arg(i).value, location(i)};
}

Operand Call::optional_tensor(size_t i) const { return none(i) ? Operand{} : tensor(i); }

Operand Call::tensor_or_number(size_t i) {
  const Binding& from = arg(i);
  if (from.is(BindingKind::kTensor) || from.is(BindingKind::kNumber))
    return {from.value, location(i)};
  require(from.fixed_number());
  // A number takes the type of the other operand's tensor.
  const bool with_integers = std::any_of(args.begin(), args.end(), [&](const Binding& other) {
    return other.value != kNone && out.graph().value(other.value).dtype == DType::kInt64;
  });
  const bool whole = !from.is(BindingKind::kFloat) && with_integers;
  return {whole ? out.integer(from.integer) : out.number(from.as_double()), location(i)};
}

std::vector<Operand> Call::tensors(size_t i) const {
  require(arg(i).is(BindingKind::kList));
  std::vector<Operand> operands;
  int item = 0;
  for (const Binding& binding : *arg(i).items) {
    require(binding.is(BindingKind::kTensor));
    operands.push_back({binding.value, location(i, item++)});
  }
  require(!operands.empty());
  return operands;
}

int64_t Call::settle(ValueId number, SourceLocation location) const {
  const HostTensor* known = out.known(number);
  require(known != nullptr && known->count() == 1 && !known->floating());
  settled_.push_back({location, number});
  return known->ints[0];
}

int64_t Call::integer(size_t i) const {
  if (arg(i).is(BindingKind::kNumber)) return settle(arg(i).value, location(i));
  require(arg(i).is(BindingKind::kInt) || arg(i).is(BindingKind::kBool));
  return arg(i).integer;
}

int64_t Call::integer(size_t i, int64_t fallback) const { return none(i) ? fallback : integer(i); }

double Call::number(size_t i) const {
  require(arg(i).fixed_number());
  return arg(i).as_double();
}

double Call::number(size_t i, double fallback) const { return none(i) ? fallback : number(i); }

double Call::single(size_t i) const {
  if (!arg(i).is(BindingKind::kTensor)) return number(i);
  const HostTensor* known = out.known(arg(i).value);
  require(known != nullptr && known->count() == 1);
  return known->number(0);
}

bool Call::flag(size_t i) const { return integer(i, 0) != 0; }

const std::string& Call::text(size_t i) const {
  require(arg(i).is(BindingKind::kString));
  return arg(i).text;
}

Element Call::element(size_t i) const {
  if (arg(i).is(BindingKind::kNumber) || arg(i).is(BindingKind::kTensor))
    return {0, arg(i).value, location(i)};
  return {integer(i), kNone, location(i)};
}

std::vector<Element> Call::elements(size_t i) const {
  if (!arg(i).is(BindingKind::kList)) return {element(i)};
  std::vector<Element> elements;
  int item = 0;
  for (const Binding& binding : *arg(i).items) {
    if (binding.is(BindingKind::kNumber) || binding.is(BindingKind::kTensor)) {
      elements.push_back({0, binding.value, location(i, item)});
    } else {
      require(binding.is(BindingKind::kInt));
      elements.push_back({binding.integer, kNone, location(i, item)});
    }
    ++item;
  }
  return elements;
}

std::vector<int64_t> Call::integers(size_t i) const {
  std::vector<int64_t> values;
  for (const Element& element : elements(i)) {
    const bool fixed = element.run_time == kNone;
    values.push_back(fixed ? element.fixed : settle(element.run_time, element.location));
  }
  return values;
}

std::vector<int64_t> Call::integers(size_t i, size_t n) const {
  std::vector<int64_t> values = integers(i);
  if (values.size() == 1) values.resize(n, values.front());
  require(values.size() == n);
  return values;
}

Shape Call::shape(ValueId value) {
  const Shape* known = out.shape(value);
  require(known != nullptr);
  return out.is_complex(value) ? Shape(known->begin(), known->end() - 1) : *known;
}

size_t Call::rank(ValueId value) { return shape(value).size(); }

int64_t Call::axis(int64_t axis, size_t rank) const {
  const auto size = static_cast<int64_t>(rank);
  require(axis >= -size && axis < size);
  return axis < 0 ? axis + size : axis;
}

}  // namespace parsimony::programs
