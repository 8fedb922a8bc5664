#include "parsimony/pruners/elements/rule.h"

#include <array>
#include <charconv>
#include <utility>

#include "parsimony/pruners/criterion.h"
#include "parsimony/pruners/errors.h"

namespace parsimony {

namespace {

constexpr int kLargest = 65536;
constexpr NmPattern kDefaultPattern = {2, 4};

constexpr std::array<std::pair<std::string_view, ElementMethod>, 5> kMethods = {
    {{"block", ElementMethod::kBlock},
     {"level", ElementMethod::kLevel},
     {"nm", ElementMethod::kNm},
     {"sparsegpt", ElementMethod::kSparseGpt},
     {"wanda_elements", ElementMethod::kWanda}}};

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Two positive integers with `separator` between them, and nothing else.
std::optional<std::pair<int, int>> two_numbers(std::string_view text, char separator) {
  int first = 0;
  int second = 0;
  const char* const end = text.data() + text.size();
  const auto left = std::from_chars(text.data(), end, first);
  if (left.ec != std::errc() || left.ptr == end || *left.ptr != separator) return std::nullopt;
  const auto right = std::from_chars(left.ptr + 1, end, second);
  if (right.ec != std::errc() || right.ptr != end) return std::nullopt;
  if (first < 1 || second < 1 || first > kLargest || second > kLargest) return std::nullopt;
  return std::pair(first, second);
}

NmPattern parse_pattern(std::string_view criterion, std::string_view text) {
  const auto numbers = two_numbers(text, ':');
  if (!numbers || numbers->first >= numbers->second) {
    throw ConfigError(
        "criterion ", in_quotes(criterion),
        ": expected N:M, N of every M elements stay, 1 <= N < M: \"2:4\", \"sparsegpt:2:4\"");
  }
  return {numbers->first, numbers->second};
}

}  // namespace

std::string_view base_name(std::string_view criterion) {
  if (!criterion.empty() && is_digit(criterion[0])) return "nm";
  return criterion.substr(0, criterion.find(':'));
}

std::optional<ElementRule> element_rule(std::string_view criterion) {
  if (find_criterion(criterion).score != nullptr) return std::nullopt;
  const std::string_view name = base_name(criterion);
  std::string_view argument = criterion;
  if (criterion.starts_with(name)) {
    argument.remove_prefix(name.size());
    if (argument.starts_with(':')) argument.remove_prefix(1);
  }
  ElementRule rule;
  for (const auto& [known, method] : kMethods) {
    if (known == name) rule.method = method;
  }
  if (rule.method == ElementMethod::kBlock) {
    const auto size = two_numbers(argument, 'x');
    if (!size) {
      throw ConfigError(
          "criterion ", in_quotes(criterion),
          ": expected the size of a block, output rows x input columns: \"block:4x1\"");
    }
    rule.block_rows = size->first;
    rule.block_columns = size->second;
  } else if (rule.method == ElementMethod::kLevel) {
    if (criterion != name) throw errors::unknown_criterion(criterion);
  } else if (!argument.empty()) {
    rule.pattern = parse_pattern(criterion, argument);
  } else if (rule.method == ElementMethod::kNm) {
    rule.pattern = kDefaultPattern;
  }
  return rule;
}

std::string to_text(const NmPattern& pattern) {
  return std::to_string(pattern.n) + ":" + std::to_string(pattern.m);
}

}  // namespace parsimony
