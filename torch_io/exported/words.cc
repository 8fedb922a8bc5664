#include <ATen/core/dispatch/Dispatcher.h>

#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <string_view>
#include <unordered_map>

#include "parsimony/torch_io/compat.h"
#include "parsimony/torch_io/exported/words_impl.h"

namespace parsimony::torch_io::exported {
namespace {

constexpr auto kTypeRows = std::to_array<TypeRow>({
    {1, at::kByte, "uint8"},
    {2, at::kChar, "int8"},
    {3, at::kShort, "int16"},
    {4, at::kInt, "int32"},
    {5, at::kLong, "int64"},
    {6, at::kHalf, "float16"},
    {7, at::kFloat, "float32"},
    {8, at::kDouble, "float64"},
    {9, at::kComplexHalf, "complex32"},
    {10, at::kComplexFloat, "complex64"},
    {11, at::kComplexDouble, "complex128"},
    {12, at::kBool, "bool"},
    {13, at::kBFloat16, "bfloat16"},
});

template <typename Key>
const TypeRow* find_type(Key TypeRow::*column, const Key& key) {
  const auto* found = std::ranges::find(kTypeRows, key, column);
  return found == kTypeRows.end() ? nullptr : found;
}

}  // namespace

const TypeRow* type_of_code(int64_t code) { return find_type(&TypeRow::code, code); }

const TypeRow* type_of_name(std::string_view name) { return find_type(&TypeRow::name, name); }

const TypeRow* type_of(at::ScalarType type) { return find_type(&TypeRow::type, type); }

std::optional<int64_t> layout_of_code(int64_t code) {
  constexpr int64_t kStridedCode = 7;
  if (code != kStridedCode) return std::nullopt;
  return static_cast<int64_t>(at::Layout::Strided);
}

std::optional<int64_t> memory_format_of_code(int64_t code) {
  constexpr auto kFormats = std::to_array<at::MemoryFormat>(
      {at::MemoryFormat::Contiguous, at::MemoryFormat::ChannelsLast,
       at::MemoryFormat::ChannelsLast3d, at::MemoryFormat::Preserve});
  if (code < 1 || code > static_cast<int64_t>(kFormats.size())) return std::nullopt;
  return static_cast<int64_t>(kFormats[code - 1]);
}

namespace {

constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
constexpr int64_t kMost = std::numeric_limits<int64_t>::max();

int64_t integer_of(const JsonReader& value) { return value.integer(kLeast, kMost); }

/// Reads a number; infinite ones are strings, of newer versions or quoted by us.
double real_of(const JsonReader& value) {
  if (!value.is_text()) return value.number();
  const std::string text = value.text();
  if (text.ends_with("-Infinity")) return -std::numeric_limits<double>::infinity();
  if (text.ends_with("Infinity")) return std::numeric_limits<double>::infinity();
  if (text.ends_with("NaN")) return std::numeric_limits<double>::quiet_NaN();
  value.expected("a number");
}

template <typename T, typename Read>
c10::List<T> list_of(const JsonReader& values, Read read) {
  c10::List<T> list;
  for (const JsonReader value : values.list()) list.push_back(read(value));
  return list;
}

std::optional<c10::IValue> code_of(std::optional<int64_t> code) {
  return code ? std::optional<c10::IValue>(*code) : std::nullopt;
}

std::optional<c10::IValue> device_of(const JsonReader& device) {
  const auto index = device.find("index");
  std::string text = device.at("type").text();
  if (index && !index->is_null()) text += ":" + std::to_string(index->count());
  return c10::IValue(c10::Device(text));
}

bool is_list(const c10::TypePtr& type) {
  return type != nullptr && type->kind() == c10::TypeKind::ListType;
}

std::optional<c10::IValue> scalar_of(std::string_view kind, const JsonReader& value,
                                     const c10::TypePtr& type) {
  if (kind == "as_int") {
    const int64_t integer = integer_of(value);
    if (is_list(type)) return c10::IValue(c10::List<int64_t>({integer}));
    const bool real = type != nullptr && type->kind() == c10::TypeKind::FloatType;
    return real ? c10::IValue(static_cast<double>(integer)) : c10::IValue(integer);
  }
  if (kind == "as_float") return c10::IValue(real_of(value));
  if (kind == "as_bool") {  // which is no number for TorchScript
    const bool number = type != nullptr && type->kind() == c10::TypeKind::NumberType;
    return number ? c10::IValue(int64_t{value.flag()}) : c10::IValue(value.flag());
  }
  if (kind == "as_string") return c10::IValue(value.text());
  return std::nullopt;
}

}  // namespace

std::optional<c10::IValue> literal_of(const JsonReader& arg, const c10::TypePtr& type) {
  if (type != nullptr && type->kind() == c10::TypeKind::OptionalType) {
    return literal_of(arg, type->castRaw<c10::OptionalType>()->getElementType());
  }
  if (arg.size() != 1) arg.expected("an object with one member");
  const JsonReader value = *arg.members().begin();
  const std::string_view kind = value.own_key();
  if (kind == "as_none") return c10::IValue();
  if (kind == "as_ints") return c10::IValue(list_of<int64_t>(value, integer_of));
  if (kind == "as_floats") return c10::IValue(list_of<double>(value, real_of));
  if (kind == "as_bools") {
    return c10::IValue(list_of<bool>(value, [](const JsonReader& flag) { return flag.flag(); }));
  }
  if (kind == "as_strings") {
    return c10::IValue(
        list_of<std::string>(value, [](const JsonReader& text) { return text.text(); }));
  }
  if (kind == "as_scalar_type") {
    const TypeRow* row = type_of_code(value.count());
    if (row == nullptr) return std::nullopt;
    return c10::IValue(static_cast<int64_t>(row->type));
  }
  if (kind == "as_layout") return code_of(layout_of_code(value.count()));
  if (kind == "as_memory_format") return code_of(memory_format_of_code(value.count()));
  if (kind == "as_device") return device_of(value);
  if (kind == "as_optional_tensor") return literal_of(value, type);
  const bool symbolic = kind == "as_sym_int" || kind == "as_sym_float" || kind == "as_sym_bool";
  return symbolic ? literal_of(value, type) : scalar_of(kind, value, type);
}

namespace {

/// Returns Python's functions on numbers.
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

/// Maps views to copies where a newer version uses its own memory layout.
std::string own_kind(const std::string& kind) {
  const bool views = kind == "aten::view" || kind == "aten::_unsafe_view";
  return views ? "aten::reshape" : kind;
}

constexpr auto kPassing = std::to_array<std::string_view>(
    {"aten::_assert_async", "aten::_assert_scalar", "aten::_assert_tensor_metadata",
     "aten::sym_constrain_range", "aten::sym_constrain_range_for_size"});
constexpr auto kInlining = std::to_array<std::string_view>(
    {"higher_order::wrap_with_autocast", "higher_order::wrap_with_set_grad_enabled"});

/// Returns schemas of pure operators only: the file's author chooses which are run.
const c10::FunctionSchema* schema_of(const std::string& kind, const std::string& overload) {
  const bool computes = kind.starts_with("aten::") || kind.starts_with("quantized::");
  if (!computes || kind == "aten::from_file") return nullptr;
  const auto handle = c10::Dispatcher::singleton().findSchema({kind, overload});
  return handle ? &handle->schema() : nullptr;
}

/// Functions on numbers, or from a tensor to its sizes, are TorchScript functions.
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
