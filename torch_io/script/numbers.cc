// Numbers: those that are known while reading are computed, those that come from sizes become
// nodes of the Graph, as ONNX exporters write them.
#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <optional>
#include <string_view>

#include "parsimony/torch_io/script/interpreter_impl.h"

namespace parsimony::torch_io::script {

namespace jit = torch::jit;

namespace {

struct Comparison {
  std::string_view op;
  bool (*holds)(double, double);
};

constexpr auto kComparisons = std::to_array<Comparison>({
    {"eq", [](double a, double b) { return a == b; }},
    {"ne", [](double a, double b) { return a != b; }},
    {"lt", [](double a, double b) { return a < b; }},
    {"le", [](double a, double b) { return a <= b; }},
    {"gt", [](double a, double b) { return a > b; }},
    {"ge", [](double a, double b) { return a >= b; }},
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

template <typename Fold>
std::optional<int64_t> checked(int64_t a, int64_t b, Fold fold) {
  int64_t out = 0;
  return fold(a, b, &out) ? std::nullopt : std::optional(out);
}

constexpr auto kOperations = std::to_array<Operation>({
    {"__and__", "And", [](int64_t a, int64_t b) -> std::optional<int64_t> { return a & b; },
     nullptr},
    {"__or__", "Or", [](int64_t a, int64_t b) -> std::optional<int64_t> { return a | b; }, nullptr},
    {"add", "Add",
     [](int64_t a, int64_t b) {
       return checked(a, b,
                      [](auto x, auto y, auto* o) { return __builtin_add_overflow(x, y, o); });
     },
     [](double a, double b) { return a + b; }},
    {"floordiv", "Div", floor_divide, [](double a, double b) { return std::floor(a / b); }},
    {"max", "Max", [](int64_t a, int64_t b) -> std::optional<int64_t> { return std::max(a, b); },
     [](double a, double b) { return std::max(a, b); }},
    {"min", "Min", [](int64_t a, int64_t b) -> std::optional<int64_t> { return std::min(a, b); },
     [](double a, double b) { return std::min(a, b); }},
    {"mul", "Mul",
     [](int64_t a, int64_t b) {
       return checked(a, b,
                      [](auto x, auto y, auto* o) { return __builtin_mul_overflow(x, y, o); });
     },
     [](double a, double b) { return a * b; }},
    {"remainder", "Mod", modulo, nullptr},
    {"sub", "Sub",
     [](int64_t a, int64_t b) {
       return checked(a, b,
                      [](auto x, auto y, auto* o) { return __builtin_sub_overflow(x, y, o); });
     },
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
  if (a.is(Kind::kFloat) || b.is(Kind::kFloat)) {
    return operation->real == nullptr
               ? Binding{}
               : Binding::of_float(operation->real(a.as_double(), b.as_double()));
  }
  const auto result = operation->whole(a.integer, b.integer);
  if (!result) return {};
  const bool logical = a.is(Kind::kBool) && b.is(Kind::kBool) && op.starts_with("__");
  return logical ? Binding::of_bool(*result != 0) : Binding::of_int(*result);
}

}  // namespace

/// The number as a value of the Graph.
Binding Interpreter::run_time(const Binding& number) {
  if (number.is(Kind::kNumber)) return number;
  return Binding::run_time(number.is(Kind::kFloat) ? builder_.number(number.number)
                                                   : builder_.integer(number.integer));
}

/// How `for i in range(start, stop, step)` is spelled: as a count and as i of a round.
Binding Interpreter::range_number(const std::string& op, const Binding& start,
                                  const Binding& second, const Binding& third) {
  if (!start.is(Kind::kInt) || !second.is(Kind::kInt) || !third.is(Kind::kInt)) return {};
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

/// Two numbers, of which both are known, or some come from sizes; the bounds of a range, which are
/// three.
bool Interpreter::arithmetic(jit::Node* node, const std::string& op) {
  if (node->inputs().size() == 3 && (op == "__range_length" || op == "__derive_index")) {
    bindings_[node->output()] =
        range_number(op, of_input(node, 0), of_input(node, 1), of_input(node, 2));
    return true;
  }
  if (node->inputs().size() != 2 || node->outputs().size() != 1) return false;
  const Binding a = of_input(node, 0);
  const Binding b = of_input(node, 1);
  if (!a.is_number() || !b.is_number()) return false;
  Binding& result = bindings_[node->output()];
  if (a.fixed_number() && b.fixed_number()) {
    result = fixed_arithmetic(op, a, b);
    return true;
  }
  builder_.begin(op);
  const ValueId x = run_time(a).value;
  const ValueId y = run_time(b).value;
  if (const auto* operation = find(kOperations, op)) {
    result = Binding::run_time(builder_.emit(std::string(operation->onnx), {{x}, {y}}));
  } else if (op == "div" || op == "pow") {  // of integers too it is a fraction
    const std::string name = op == "div" ? "Div" : "Pow";
    result = Binding::run_time(builder_.emit(name, {{builder_.real(x)}, {builder_.real(y)}}));
  } else if (op == "eq" || op == "ne") {
    const ValueId same = builder_.emit("Equal", {{x}, {y}});
    result = Binding::run_time(op == "eq" ? same : builder_.emit("Not", {{same}}));
  } else if (op == "lt" || op == "le" || op == "gt" || op == "ge") {
    const std::string name = op[0] == 'l' ? "Less" : "Greater";
    result = Binding::run_time(builder_.emit(op[1] == 'e' ? name + "OrEqual" : name, {{x}, {y}}));
  }
  return true;
}

}  // namespace parsimony::torch_io::script
