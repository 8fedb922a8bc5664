#include "parsimony/programs/schema.h"

#include <cstdlib>
#include <unordered_map>
#include <utility>

namespace parsimony::programs {
namespace {

constexpr std::string_view kSchemas =
#include "parsimony/programs/schemas.inc"
    ;

/// Splits at commas outside of brackets.
std::vector<std::string_view> parts_of(std::string_view list) {
  std::vector<std::string_view> parts;
  int depth = 0;
  size_t begin = 0;
  for (size_t i = 0; i <= list.size(); ++i) {
    const char c = i < list.size() ? list[i] : ',';
    depth += c == '[' || c == '(' ? 1 : c == ']' || c == ')' ? -1 : 0;
    if (c != ',' || depth != 0) continue;
    std::string_view part = list.substr(begin, i - begin);
    part.remove_prefix(std::min(part.find_first_not_of(' '), part.size()));
    if (!part.empty()) parts.push_back(part);
    begin = i + 1;
  }
  return parts;
}

Binding single_default(std::string_view text) {
  if (text == "None") return Binding::none();
  if (text == "True" || text == "False") return Binding::of_bool(text == "True");
  if (text.front() == '"' || text.front() == '\'') {
    return Binding::of_text(std::string(text.substr(1, text.size() - 2)));
  }
  if (text == "contiguous_format") return Binding::of_int(0);
  const std::string number(text);
  if (text.find_first_of(".e") != std::string_view::npos) {
    return Binding::of_float(std::strtod(number.c_str(), nullptr));
  }
  return Binding::of_int(std::strtoll(number.c_str(), nullptr, 10));
}

/// One number stands for all elements of a list of fixed length: `SymInt[2] stride=1`.
Binding default_of(std::string_view text, bool is_list, size_t length, bool is_real) {
  std::vector<Binding> items;
  if (text.front() == '[') {
    for (const std::string_view item : parts_of(text.substr(1, text.size() - 2))) {
      items.push_back(single_default(item));
    }
    return Binding::list(std::move(items));
  }
  const Binding one = single_default(text);
  if (is_list && one.is(BindingKind::kInt)) {
    return Binding::list(std::vector<Binding>(length, one));
  }
  return is_real && one.is(BindingKind::kInt) ? Binding::of_float(one.as_double()) : one;
}

/// "SymInt[2] stride=1"
Parameter parameter_of(std::string_view text) {
  const size_t equals = text.find('=');
  const std::string_view declared = text.substr(0, equals);
  const size_t space = declared.rfind(' ');
  const std::string_view type = declared.substr(0, space);
  const size_t bracket = type.find('[');
  Parameter parameter;
  parameter.name = declared.substr(space + 1);
  parameter.is_list = bracket != std::string_view::npos;
  if (type.starts_with("float")) parameter.kind = Parameter::Kind::kReal;
  if (type.starts_with("Scalar") && !type.starts_with("ScalarType")) {
    parameter.kind = Parameter::Kind::kScalar;
  }
  const size_t length =
      parameter.is_list ? std::strtoul(type.data() + bracket + 1, nullptr, 10) : 0;
  if (equals != std::string_view::npos) {
    parameter.fallback = default_of(text.substr(equals + 1), parameter.is_list, length,
                                    parameter.kind == Parameter::Kind::kReal);
  }
  return parameter;
}

Schema schema_of(std::string_view text) {
  const size_t begin = text.find('(') + 1;
  const size_t end = text.rfind(") -> ");
  Schema schema;
  for (const std::string_view part : parts_of(text.substr(begin, end - begin))) {
    if (part != "*") schema.parameters.push_back(parameter_of(part));
  }
  std::string_view results = text.substr(end + 5);
  if (results.starts_with("(")) results = results.substr(1, results.size() - 2);
  schema.results = parts_of(results).size();
  return schema;
}

}  // namespace

const Schema* find_schema(std::string_view op, std::string_view overload) {
  static const auto known = [] {
    std::unordered_map<std::string, Schema> schemas;
    for (size_t begin = 1; begin < kSchemas.size();) {
      const size_t end = kSchemas.find('\n', begin);
      const std::string_view line = kSchemas.substr(begin, end - begin);
      schemas.emplace(std::string(line.substr(0, line.find('('))), schema_of(line));
      begin = end + 1;
    }
    return schemas;
  }();
  const std::string dotted =
      overload.empty() || overload == "default" ? "" : "." + std::string(overload);
  auto found = known.find(std::string(op) + dotted);
  if (found == known.end() && op.ends_with('_')) {
    found = known.find(std::string(op.substr(0, op.size() - 1)) + dotted);
  }
  return found == known.end() ? nullptr : &found->second;
}

}  // namespace parsimony::programs
