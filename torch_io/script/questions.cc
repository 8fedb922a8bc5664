// What is asked of tensors, and how numbers become tensors and back.
#include <cmath>
#include <optional>
#include <string>

#include "parsimony/torch_io/script/interpreter_impl.h"

namespace parsimony::torch_io::script {

namespace jit = torch::jit;

/// What is asked of a tensor: its rank, its sizes, its type.
bool Interpreter::tensor_question(jit::Node* node, const std::string& op) {
  if (node->inputs().empty() || node->outputs().size() != 1) return false;
  const Binding x = of_input(node, 0);
  Binding& result = bindings_[node->output()];
  if (op == "dtype" && node->kind().is_prim()) return true;  // left unknown
  if (op == "device" || op == "layout") return true;
  if (!x.is(Kind::kTensor)) return false;
  if (op == "is_floating_point") {
    const DType type = graph_.value(x.value).dtype;
    if (type != DType::kUnknown) result = Binding::of_bool(is_floating(type));
    return true;
  }
  const bool sizes = op == "size" || op == "shape" || op == "sym_size";
  const bool rank = op == "dim" || op == "ndim";
  if (!sizes && !rank && op != "len" && op != "numel") return false;
  builder_.begin(op);
  if (op == "numel") {
    result = Binding::run_time(builder_.emit("Size", {{x.value}}));
    return true;
  }
  const Shape* shape = builder_.shape(x.value);
  if (rank) {
    if (shape != nullptr) result = Binding::of_int(static_cast<int64_t>(shape->size()));
    return true;
  }
  if (op == "len" || node->inputs().size() == 2) {
    const Binding dim = op == "len" ? Binding::of_int(0) : of_input(node, 1);
    if (shape == nullptr || !dim.is(Kind::kInt)) return true;
    const int64_t at = dim.integer < 0 ? dim.integer + std::ssize(*shape) : dim.integer;
    result = Binding::run_time(builder_.size_of_dim(x.value, at));
    return true;
  }
  if (shape == nullptr) return true;
  std::vector<Binding> items;
  for (int64_t d = 0, n = std::ssize(*shape); d < n; ++d) {
    items.push_back(Binding::run_time(builder_.size_of_dim(x.value, d)));
  }
  result = Binding::list(std::move(items));
  return true;
}

/// The integer that a constant tensor holds.
std::optional<int64_t> Interpreter::literal(const Binding& binding) const {
  if (!binding.is(Kind::kTensor) || graph_.value(binding.value).weight == kNone) {
    return std::nullopt;
  }
  const Weight& weight = graph_.weight(graph_.value(binding.value).weight);
  const auto home = origins_.homes.find(weight.name);
  const bool constant = home != origins_.homes.end() && home->second.constant != nullptr;
  if (!constant || weight.dtype != DType::kInt64 || weight.count() != 1) return std::nullopt;
  return to_host(weight).ints.front();
}

/// Between tensors of one number, numbers at run time and numbers that are known.
bool Interpreter::conversion(jit::Node* node, const std::string& op) {
  if (node->inputs().size() != 1 || node->outputs().size() != 1) return false;
  const Binding x = of_input(node, 0);
  Binding& result = bindings_[node->output()];
  builder_.begin(op);
  if (op == "NumToTensor" || op == "scalar_tensor") {
    if (x.is_number()) result = Binding::tensor(run_time(x).value);
    return x.is_number();
  }
  const bool to_number = op == "Int" || op == "IntImplicit" || op == "ScalarImplicit" ||
                         op == "item" || op == "Float" || op == "FloatImplicit" || op == "Bool";
  if (op == "__not__" || op == "neg") {
    if (x.fixed_number()) {
      result = op == "__not__"      ? Binding::of_bool(x.integer == 0)
               : x.is(Kind::kFloat) ? Binding::of_float(-x.number)
                                    : Binding::of_int(-x.integer);
      return true;
    }
    if (!x.is(Kind::kNumber)) return op == "__not__";
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
  } else if (x.is(Kind::kNumber) || x.is(Kind::kTensor)) {
    // What a tensor holds is known only if it was computed from sizes.
    const bool known = x.is(Kind::kNumber) || builder_.known(x.value) != nullptr;
    const bool rounds = op.starts_with("Int") && is_floating(graph_.value(x.value).dtype);
    if (known) result = Binding::run_time(rounds ? builder_.whole(x.value) : x.value);
  }
  return true;
}

}  // namespace parsimony::torch_io::script
