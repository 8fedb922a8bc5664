#include <limits>
#include <string>
#include <string_view>

#include "parsimony/torch_io/exported/literal_impl.h"
#include "parsimony/torch_io/exported/types_impl.h"

namespace parsimony::torch_io::exported {
namespace {

constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
constexpr int64_t kMost = std::numeric_limits<int64_t>::max();

int64_t integer_of(const JsonReader& value) { return value.integer(kLeast, kMost); }

/// Infinite ones are texts, of newer versions or quoted by us.
double real_of(const JsonReader& value) {
  if (!value.is_text()) return value.number();
  const std::string text = value.text();
  if (text.ends_with("-Infinity")) return -std::numeric_limits<double>::infinity();
  if (text.ends_with("Infinity")) return std::numeric_limits<double>::infinity();
  if (text.ends_with("NaN")) return std::numeric_limits<double>::quiet_NaN();
  value.wanted("a number");
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
  if (arg.size() != 1) arg.wanted("an object with one member");
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

}  // namespace parsimony::torch_io::exported
