// Numbers: queries of tensors, arithmetic on them, and the sizes that a result depends on.
#include "parsimony/programs/numbers.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "parsimony/programs/element_types.h"

namespace parsimony::programs {

std::optional<Binding> Numbers::computed(const NumberCall& call) {
  Binding result;
  if (question(call, result) || conversion(call, result) || arithmetic(call, result)) return result;
  return std::nullopt;
}

Binding Numbers::size_of(ValueId value, int64_t dim) {
  const Element size = size_at(builder_, value, dim);
  return size.run_time == kNone ? Binding::of_int(size.fixed) : Binding::run_time(size.run_time);
}

/// Queries of a tensor: its rank, sizes and type.
bool Numbers::question(const NumberCall& call, Binding& result) {
  const std::string& op = call.op;
  if (call.args.empty()) return false;
  const Binding& x = call.args[0];
  if (op == "dtype" && call.is_prim) {
    const bool is_tensor = x.is(BindingKind::kTensor) && !builder_.is_complex(x.value);
    const DType type = is_tensor ? graph().value(x.value).dtype : DType::kUnknown;
    if (type != DType::kUnknown) {
      result = Binding::of_int(torch_type_of(type));
    }
    return true;
  }
  if (op == "device" || op == "layout") return true;
  if (!x.is(BindingKind::kTensor)) return false;
  if (op == "is_floating_point") {
    const DType type = graph().value(x.value).dtype;
    if (type != DType::kUnknown) result = Binding::of_bool(is_floating(type));
    return true;
  }
  if (op == "is_complex") {
    result = Binding::of_bool(builder_.is_complex(x.value));
    return graph().value(x.value).dtype != DType::kUnknown;
  }
  const bool sizes = op == "size" || op == "shape" || op == "sym_size";
  const bool rank = op == "dim" || op == "ndim";
  if (!sizes && !rank && op != "len" && op != "numel") return false;
  builder_.begin(op);
  if (op == "numel" && builder_.is_complex(x.value)) return true;
  if (op == "numel") {
    result = Binding::run_time(builder_.emit("Size", {{x.value}}));
    return true;
  }
  std::optional<Shape> shape;
  if (const Shape* known = builder_.shape(x.value)) shape = *known;
  if (shape && builder_.is_complex(x.value)) shape->pop_back();
  if (rank) {
    if (shape) result = Binding::of_int(static_cast<int64_t>(shape->size()));
    return true;
  }
  if (op == "len" || call.args.size() == 2) {
    const Binding dim = op == "len" ? Binding::of_int(0) : call.args[1];
    if (!shape || !dim.is(BindingKind::kInt)) return true;
    const int64_t at = dim.integer < 0 ? dim.integer + std::ssize(*shape) : dim.integer;
    result = size_of(x.value, at);
    return true;
  }
  if (!shape) return true;
  std::vector<Binding> items;
  for (int64_t d = 0, n = std::ssize(*shape); d < n; ++d) {
    items.push_back(size_of(x.value, d));
  }
  result = Binding::list(std::move(items));
  return true;
}

/// Returns the integer in a constant tensor.
std::optional<int64_t> Numbers::literal(const Binding& binding) const {
  if (!binding.is(BindingKind::kTensor) || graph().value(binding.value).weight == kNone) {
    return std::nullopt;
  }
  const Weight& weight = graph().weight_of(binding.value);
  if (!builder_.sources().literals.contains(weight.name) || weight.dtype != DType::kInt64 ||
      weight.count() != 1)
    return std::nullopt;
  return to_host(weight).ints.front();
}

/// Converts between tensors of one number, run-time numbers and known numbers.
bool Numbers::conversion(const NumberCall& call, Binding& result) {
  const std::string& op = call.op;
  if (call.args.size() != 1) return false;
  const Binding& x = call.args[0];
  builder_.begin(op);
  if (op == "NumToTensor" || op == "scalar_tensor") {
    if (x.is_number()) result = Binding::tensor(run_time(x).value);
    return x.is_number();
  }
  const bool to_number = op == "Int" || op == "IntImplicit" || op == "ScalarImplicit" ||
                         op == "item" || op == "Float" || op == "FloatImplicit" || op == "Bool";
  if (op == "__not__" || op == "neg") {
    if (x.fixed_number()) {
      result = op == "__not__"             ? Binding::of_bool(x.integer == 0)
               : x.is(BindingKind::kFloat) ? Binding::of_float(-x.number)
                                           : Binding::of_int(-x.integer);
      return true;
    }
    if (!x.is(BindingKind::kNumber)) return op == "__not__";
    result = Binding::run_time(builder_.emit(op == "neg" ? "Neg" : "Not", {{x.value}}));
    return true;
  }
  if ((op == "sqrt" || op == "log") && x.is_number()) {
    const bool root = op == "sqrt";
    if (x.fixed_number()) {
      const double of = x.as_double();
      result = Binding::of_float(root ? std::sqrt(of) : std::log(of));
    } else {
      const ValueId real = builder_.real(x.value);
      result = Binding::run_time(builder_.emit(root ? "Sqrt" : "Log", {{real}}));
    }
    return true;
  }
  if (!to_number) return false;
  if (x.fixed_number()) {
    result = op.starts_with("Float")  ? Binding::of_float(x.as_double())
             : op.starts_with("Bool") ? Binding::of_bool(x.as_double() != 0)
             : op.starts_with("Int")  ? Binding::of_int(static_cast<int64_t>(x.as_double()))
                                      : x;
  } else if (const auto constant = literal(x)) {
    result = op.starts_with("Bool") ? Binding::of_bool(*constant != 0) : Binding::of_int(*constant);
  } else if (x.is(BindingKind::kNumber) || x.is(BindingKind::kTensor)) {
    // Elements of a tensor are known only if computed from sizes. Real numbers are not sizes and
    // need not be known.
    const bool real = is_floating(graph().value(x.value).dtype);
    const bool rounds = op.starts_with("Int") && real;
    const Shape* shape = builder_.shape(x.value);
    const bool stays = real && !rounds && !op.starts_with("Bool") && shape && shape->empty();
    if (op.starts_with("Bool") && builder_.known(x.value) == nullptr) {
      result = Binding::run_time(
          builder_.cast(x.value, DType::kBool));  // not a size, whatever its operands
    } else if (stays || x.is(BindingKind::kNumber) || builder_.known(x.value) != nullptr) {
      result = Binding::run_time(rounds ? builder_.cast(x.value, DType::kInt64) : x.value);
    }
  }
  return true;
}

namespace {

struct Comparison {
  std::string_view op;
  std::string_view onnx;  ///< of its opposite for "ne"
  bool (*holds)(double, double);
};

constexpr auto kComparisons = std::to_array<Comparison>({
    {"eq", "Equal", [](double a, double b) { return a == b; }},
    {"ne", "Equal", [](double a, double b) { return a != b; }},
    {"lt", "Less", [](double a, double b) { return a < b; }},
    {"le", "LessOrEqual", [](double a, double b) { return a <= b; }},
    {"gt", "Greater", [](double a, double b) { return a > b; }},
    {"ge", "GreaterOrEqual", [](double a, double b) { return a >= b; }},
});

struct Operation {
  std::string_view op;
  std::string_view onnx;
  std::optional<int64_t> (*whole)(int64_t, int64_t);
  double (*real)(double, double);
};

std::optional<int64_t> floor_divide(int64_t a, int64_t b) {
  if (b == 0 || (b == -1 && a == std::numeric_limits<int64_t>::min())) return std::nullopt;
  return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
}

std::optional<int64_t> modulo(int64_t a, int64_t b) {
  if (b == 0 || b == -1) return b == 0 ? std::nullopt : std::optional<int64_t>(0);
  return a % b + (a % b != 0 && (a < 0) != (b < 0) ? b : 0);
}

std::optional<int64_t> narrowed(__int128 wide) {
  const auto narrow = static_cast<int64_t>(wide);
  return narrow == wide ? std::optional(narrow) : std::nullopt;
}

constexpr auto kOperations = std::to_array<Operation>({
    {"__and__", "And", [](int64_t a, int64_t b) -> std::optional<int64_t> { return a & b; },
     nullptr},
    {"__or__", "Or", [](int64_t a, int64_t b) -> std::optional<int64_t> { return a | b; }, nullptr},
    {"add", "Add", [](int64_t a, int64_t b) { return narrowed(__int128{a} + b); },
     [](double a, double b) { return a + b; }},
    {"floordiv", "Div", floor_divide, [](double a, double b) { return std::floor(a / b); }},
    {"max", "Max", [](int64_t a, int64_t b) -> std::optional<int64_t> { return std::max(a, b); },
     [](double a, double b) { return std::max(a, b); }},
    {"min", "Min", [](int64_t a, int64_t b) -> std::optional<int64_t> { return std::min(a, b); },
     [](double a, double b) { return std::min(a, b); }},
    {"mul", "Mul", [](int64_t a, int64_t b) { return narrowed(__int128{a} * b); },
     [](double a, double b) { return a * b; }},
    {"remainder", "Mod", modulo, nullptr},
    {"sub", "Sub", [](int64_t a, int64_t b) { return narrowed(__int128{a} - b); },
     [](double a, double b) { return a - b; }},
});

template <typename Table>
auto find(const Table& table, std::string_view op) {
  const auto found =
      std::find_if(table.begin(), table.end(), [&](const auto& row) { return row.op == op; });
  return found == table.end() ? nullptr : &*found;
}

Binding fixed_arithmetic(const std::string& op, const Binding& a, const Binding& b) {
  if (const auto* comparison = find(kComparisons, op)) {
    return Binding::of_bool(comparison->holds(a.as_double(), b.as_double()));
  }
  if (op == "div") return Binding::of_float(a.as_double() / b.as_double());
  if (op == "pow") return Binding::of_float(std::pow(a.as_double(), b.as_double()));
  const auto* operation = find(kOperations, op);
  if (operation == nullptr) return {};
  if (a.is(BindingKind::kFloat) || b.is(BindingKind::kFloat)) {
    return operation->real == nullptr
               ? Binding{}
               : Binding::of_float(operation->real(a.as_double(), b.as_double()));
  }
  const auto result = operation->whole(a.integer, b.integer);
  if (!result) return {};
  const bool logical = a.is(BindingKind::kBool) && b.is(BindingKind::kBool) && op.starts_with("__");
  return logical ? Binding::of_bool(*result != 0) : Binding::of_int(*result);
}

}  // namespace

std::optional<bool> Numbers::decided(const Binding& condition) const {
  if (condition.fixed_number()) return condition.as_double() != 0;
  if (!condition.is(BindingKind::kNumber)) return std::nullopt;
  const HostTensor* known = builder_.known(condition.value);
  if (known == nullptr || known->count() != 1) return std::nullopt;
  return known->number(0) != 0;
}

/// Returns the number as a value of the Graph.
Binding Numbers::run_time(const Binding& number) {
  if (number.is(BindingKind::kNumber)) return number;
  return Binding::run_time(number.is(BindingKind::kFloat) ? builder_.number(number.number)
                                                          : builder_.integer(number.integer));
}

/// `for i in range(start, stop, step)` in jit: the trip count, and i of an iteration.
Binding Numbers::range_number(const std::string& op, const Binding& start, const Binding& second,
                              const Binding& third) {
  if (!start.is(BindingKind::kInt) || !second.is(BindingKind::kInt) || !third.is(BindingKind::kInt))
    return {};
  if (op == "__derive_index") {  // (round, start, step)
    int64_t at = 0;
    const bool over = __builtin_mul_overflow(start.integer, third.integer, &at) ||
                      __builtin_add_overflow(second.integer, at, &at);
    return over ? Binding{} : Binding::of_int(at);
  }
  constexpr int64_t kMost = int64_t{1} << 32;
  const int64_t step = third.integer;
  const auto small = [](int64_t x) { return x > -kMost && x < kMost; };
  if (step == 0 || !small(start.integer) || !small(second.integer) || !small(step)) return {};
  const int64_t span = step > 0 ? second.integer - start.integer : start.integer - second.integer;
  const int64_t stride = std::abs(step);
  return Binding::of_int(span <= 0 ? 0 : (span - 1) / stride + 1);
}

/// Computes with two numbers, both known or some from sizes; or with the three bounds of a range.
bool Numbers::arithmetic(const NumberCall& call, Binding& result) {
  const std::string& op = call.op;
  if (call.args.size() == 3 && (op == "__range_length" || op == "__derive_index")) {
    result = range_number(op, call.args[0], call.args[1], call.args[2]);
    return true;
  }
  if (call.args.size() != 2) return false;
  const Binding& a = call.args[0];
  const Binding& b = call.args[1];
  if (!a.is_number() || !b.is_number()) return false;
  if (a.fixed_number() && b.fixed_number()) {
    result = fixed_arithmetic(op, a, b);
    return true;
  }
  builder_.begin(op);
  const ValueId x = run_time(a).value;
  const ValueId y = run_time(b).value;
  if (const auto* operation = find(kOperations, op)) {
    result = Binding::run_time(builder_.emit(std::string(operation->onnx), {{x}, {y}}));
  } else if (op == "div" || op == "pow") {  // a fraction also for integers
    const std::string name = op == "div" ? "Div" : "Pow";
    result = Binding::run_time(builder_.emit(name, {{builder_.real(x)}, {builder_.real(y)}}));
  } else if (const auto* comparison = find(kComparisons, op)) {
    const ValueId holds = builder_.emit(std::string(comparison->onnx), {{x}, {y}});
    result = Binding::run_time(op == "ne" ? builder_.emit("Not", {{holds}}) : holds);
  }
  return true;
}

std::vector<Size> Numbers::source_sizes(ValueId number) const {
  constexpr size_t kMostNodes = 256;  // arithmetic on sizes is short
  std::vector<Size> sizes;
  std::unordered_set<ValueId> done;
  std::vector<ValueId> open{number};
  while (!open.empty() && done.size() < kMostNodes) {
    const ValueId value = open.back();
    open.pop_back();
    const Node* node = builder_.producer(value);
    if (node == nullptr || !done.insert(value).second) continue;
    // One size: Gather(Shape(x), index); all of them: Shape(x), Size(x).
    const Node* shape = node->op == "Gather" ? builder_.producer(node->inputs[0]) : nullptr;
    const bool of_shape = shape != nullptr && shape->op == "Shape";
    const WeightId index = of_shape ? graph().value(node->inputs[1]).weight : kNone;
    if (node->op == "Shape" || node->op == "Size") {
      sizes.push_back({node->inputs[0], kNone});
    } else if (index != kNone) {
      const auto dim = static_cast<int>(to_host(graph().weight(index)).ints[0]);
      sizes.push_back({shape->inputs[0], dim});
    } else {
      std::ranges::copy_if(node->inputs, std::back_inserter(open),
                           [](ValueId input) { return input != kNone; });
    }
  }
  return sizes;
}

/// Records a number that the Graph stores as a constant. One that comes from a single size becomes
/// a literal of the program if that size changes; otherwise its sizes are pinned.
void Numbers::settle(const std::string& op, const SettledNumber& number) {
  const std::vector<Size> sizes = source_sizes(number.number);
  if (sizes.size() != 1 || sizes[0].dim == kNone) return pin_source_sizes(op, number.number);
  const auto value = static_cast<double>(builder_.known(number.number)->ints.at(0));
  builder_.sources().frozen.push_back(
      {number.location, sizes[0].value, sizes[0].dim, value, /*whole=*/true});
}

/// Pins the sizes that a number depends on if it leaves the graph or controls it. A dimension that
/// is indexed at one position is pinned.
void Numbers::pin_source_sizes(const std::string& op, ValueId number) {
  if (graph().value(number).weight != kNone || builder_.known(number) == nullptr) return;
  for (const Size& size : source_sizes(number)) {
    if (size.dim == kNone) {
      builder_.pin(op, {size.value});
      continue;
    }
    builder_.begin(op);
    builder_.pin_axis(size.value, size.dim);
  }
}

}  // namespace parsimony::programs
