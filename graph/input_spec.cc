#include "parsimony/graph/input_spec.h"

#include <array>
#include <charconv>
#include <optional>
#include <string>
#include <vector>

#include "parsimony/base/errors.h"
#include "parsimony/base/parse.h"

namespace parsimony {
namespace {

constexpr std::string_view kOpen = "?";

ConfigError bad_spec(std::string_view text, const std::string& why, const std::string& hint = "") {
  return ConfigError("--input " + std::string(text) + ": " + why +
                     "; wanted for example 1x3x32x32, 2x8:int64, :int64=16000 or NAME=1x3x32x32" +
                     (hint.empty() ? "" : "." + hint));
}

template <typename Number>
Number parse_number(std::string_view text, std::string_view whole) {
  const auto value = number_of<Number>(text);
  if (!value) throw bad_spec(whole, "\"" + std::string(text) + "\" is not a number");
  return *value;
}

DType parse_type(std::string_view name, std::string_view whole) {
  std::vector<std::string> names;
  for (int t = 1; t <= static_cast<int>(DType::kBool); ++t) {
    names.emplace_back(name_of(static_cast<DType>(t)));
    if (names.back() == name) return static_cast<DType>(t);
  }
  throw bad_spec(whole, "unknown element type \"" + std::string(name) + "\"",
                 did_you_mean(name, names));
}

/// Where the name ends in "NAME=…"; npos if there is none, as in ":int64=16000".
size_t end_of_name(std::string_view text) {
  const size_t equals = text.find('=');
  if (equals == std::string_view::npos || equals == 0) return std::string_view::npos;
  const std::string_view before = text.substr(0, equals);
  const bool sized =
      before[0] >= '0' && before[0] <= '9' && before.find_first_of("x:") != std::string_view::npos;
  const bool is_spec = before == kOpen || before[0] == ':' || sized;
  return is_spec ? std::string_view::npos : equals;
}

bool is_number(std::string_view text) { return number_of<double>(text).has_value(); }

/// The shortest text that reads back as the same number.
std::string number_text(double value) {
  std::array<char, 32> buffer{};
  const char* end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr;
  return {buffer.data(), static_cast<size_t>(end - buffer.data())};
}

}  // namespace

InputSpec parse_input_spec(std::string_view text) {
  if (const size_t equals = end_of_name(text); equals != std::string_view::npos) {
    const std::string_view rest = text.substr(equals + 1);
    InputSpec spec = parse_input_spec(is_number(rest) ? "?=" + std::string(rest) : rest);
    spec.name = text.substr(0, equals);
    return spec;
  }
  InputSpec spec;
  std::string_view rest = text;
  spec.open = rest.starts_with(kOpen);
  if (spec.open) rest.remove_prefix(kOpen.size());
  std::optional<std::string_view> value;
  if (const size_t equals = rest.find('='); equals != std::string_view::npos) {
    value = rest.substr(equals + 1);
    rest = rest.substr(0, equals);
  }
  if (const size_t colon = rest.find(':'); colon != std::string_view::npos) {
    spec.dtype = parse_type(rest.substr(colon + 1), text);
    rest = rest.substr(0, colon);
  }
  if (value && (spec.open || is_floating(spec.dtype))) {
    spec.value = parse_number<double>(*value, text);
  } else if (value) {
    spec.value = static_cast<double>(parse_number<int64_t>(*value, text));
  }
  for (size_t begin = 0; !rest.empty() && begin != std::string_view::npos;) {
    const size_t x = rest.find('x', begin);
    const auto size = parse_number<int64_t>(rest.substr(begin, x - begin), text);
    if (size < 1) throw bad_spec(text, "sizes must be positive");
    spec.dims.push_back(size);
    begin = x == std::string_view::npos ? x : x + 1;
  }
  if (spec.value && !spec.dims.empty()) throw bad_spec(text, "only a scalar can be given a value");
  element_count(spec.dims);
  return spec;
}

std::string to_text(const InputSpec& spec) {
  if (spec.open) return std::string(kOpen) + (spec.value ? "=" + number_text(*spec.value) : "");
  if (spec.value && is_floating(spec.dtype)) {
    return ":" + std::string(name_of(spec.dtype)) + "=" + number_text(*spec.value);
  }
  if (spec.value) return ":int64=" + std::to_string(static_cast<int64_t>(*spec.value));
  std::string text;
  for (const int64_t size : spec.dims) text += (text.empty() ? "" : "x") + std::to_string(size);
  if (spec.dtype != DType::kUnknown) text += ":" + std::string(name_of(spec.dtype));
  return text;
}

}  // namespace parsimony
