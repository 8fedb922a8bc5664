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
      {"trunc", "aten::Int"},
  };
  return functions;
}

/// Aliases that the program means: views of what a newer version lays out in memory in its own way
/// are copies where they must be, and sizes are numbers.
std::string own_kind(const std::string& kind) {
  if (kind == "aten::view" || kind == "aten::_unsafe_view") return "aten::reshape";
  if (kind == "aten::sym_size") return "aten::size";
  if (kind == "aten::sym_numel") return "aten::numel";
  return kind;
}

constexpr auto kPassing = std::to_array<std::string_view>(
    {"aten::_assert_async", "aten::_assert_scalar", "aten::_assert_tensor_metadata",
     "aten::sym_constrain_range", "aten::sym_constrain_range_for_size"});
constexpr auto kInlining = std::to_array<std::string_view>(
    {"higher_order::wrap_with_autocast", "higher_order::wrap_with_set_grad_enabled"});

const c10::FunctionSchema* schema_of(const std::string& kind, const std::string& overload) {
  const auto handle = c10::Dispatcher::singleton().findSchema({kind, overload});
  return handle ? &handle->schema() : nullptr;
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
    target.kind = own_kind(target.kind);
  } else {
    const std::string name = text.substr(text.rfind('.') + 1);
    const auto number = number_functions().find(name);
    target.kind = number == number_functions().end() ? "python::" + name : number->second;
  }
  return target;
}

}  // namespace parsimony::torch_io::exported
