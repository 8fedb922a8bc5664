// Numbers and lists in texts that users write.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <optional>
#include <string_view>
#include <system_error>
#include <vector>

namespace parsimony {

/// The number that the whole text is; empty if it is none.
template <typename Number>
std::optional<Number> number_of(std::string_view text) {
  Number number{};
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && rest == end ? std::optional(number) : std::nullopt;
}

/// A share, "0.3" or "30%"; empty for other texts.
inline std::optional<double> share_of(std::string_view text) {
  if (!text.ends_with('%')) return number_of<double>(text);
  text.remove_suffix(1);
  // With more digits than a double's: otherwise no percentage means some of the shares.
  const std::optional<long double> number = number_of<long double>(text);
  if (!number) return std::nullopt;
  return static_cast<double>(*number / 100);
}

/// The parts between separators, one more than there are separators.
inline std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(separator, begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

}  // namespace parsimony
