#include <ATen/core/dispatch/Dispatcher.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <unordered_map>

#include "parsimony/torch_io/exported/operators_impl.h"
#include "parsimony/torch_io/newer_operators.h"

namespace parsimony::torch_io::exported {
namespace {

/// Functions of Python on numbers.
const std::unordered_map<std::string_view, std::string_view>& number_functions() {
  static const std::unordered_map<std::string_view, std::string_view> functions = {
      {"add", "aten::add"},         {"sub", "aten::sub"},
      {"mul", "aten::mul"},         {"floordiv", "aten::floordiv"},
      {"mod", "aten::remainder"},   {"truediv", "aten::div"},
      {"pow", "aten::pow"},         {"neg", "aten::neg"},
      {"eq", "aten::eq"},           {"ne", "aten::ne"},
      {"lt", "aten::lt"},           {"le", "aten::le"},
      {"gt", "aten::gt"},           {"ge", "aten::ge"},
      {"and_", "aten::__and__"},    {"or_", "aten::__or__"},
      {"sym_max", "prim::max"},     {"sym_min", "prim::min"},
      {"sym_not", "aten::__not__"}, {"sym_int", "aten::Int"},
      {"sym_float", "aten::Float"}, {"ceil", "aten::ceil"},
      {"floor", "aten::floor"},     {"_sym_sqrt", "aten::sqrt"},
      {"trunc", "aten::Int"},       {"sym_size", "aten::size"},
      {"sym_numel", "aten::numel"},
  };
  return functions;
}

/// Views of what a newer version lays out in memory in its own way are copies where they must be.
std::string own_kind(const std::string& kind) {
  const bool views = kind == "aten::view" || kind == "aten::_unsafe_view";
  return views ? "aten::reshape" : kind;
}

constexpr auto kPassing = std::to_array<std::string_view>(
    {"aten::_assert_async", "aten::_assert_scalar", "aten::_assert_tensor_metadata",
     "aten::sym_constrain_range", "aten::sym_constrain_range_for_size"});
constexpr auto kInlining = std::to_array<std::string_view>(
    {"higher_order::wrap_with_autocast", "higher_order::wrap_with_set_grad_enabled"});

/// Of operators that compute, and nothing else: the file's author chose which are run.
const c10::FunctionSchema* schema_of(const std::string& kind, const std::string& overload) {
  const bool computes = kind.starts_with("aten::") || kind.starts_with("quantized::");
  if (!computes || kind == "aten::from_file") return nullptr;
  const auto handle = c10::Dispatcher::singleton().findSchema({kind, overload});
  return handle ? &handle->schema() : nullptr;
}

/// A function on numbers, or from a tensor to its sizes, is one of TorchScript.
void take_number(const std::string& name, Target& target) {
  const auto number = number_functions().find(name);
  if (number == number_functions().end()) return;
  if (target.schema != nullptr && !name.starts_with("sym_")) return;  // of tensors
  target.schema = nullptr;
  target.is_number = true;
  target.kind = number->second;
}

}  // namespace

Target target_of(const std::string& text) {
  add_newer_operators();
  constexpr std::string_view kOps = "torch.ops.";
  Target target;
  if (text.starts_with(kOps)) {
    const size_t name = text.find('.', kOps.size());
    const size_t end = text.find('.', name == std::string::npos ? text.size() : name + 1);
    const std::string space = text.substr(kOps.size(), name - kOps.size());
    const std::string op = name == std::string::npos ? "" : text.substr(name + 1, end - name - 1);
    const std::string overload = end == std::string::npos ? "" : text.substr(end + 1);
    target.kind = space + "::" + op;
    target.schema = schema_of(target.kind, overload == "default" ? "" : overload);
    target.branches = target.kind == "higher_order::cond";
    target.inlines = std::ranges::find(kInlining, target.kind) != kInlining.end();
    target.passes = std::ranges::find(kPassing, target.kind) != kPassing.end();
    target.kind = target.schema == nullptr ? "unknown::" + op : own_kind(target.kind);
    if (space == "aten") take_number(op, target);
  } else {
    const std::string name = text.substr(text.rfind('.') + 1);
    target.kind = "unknown::" + name;
    take_number(name, target);
  }
  return target;
}

}  // namespace parsimony::torch_io::exported
