#if defined(__GNUC__) && !defined(__clang__)
// GCC bug 105562: std::regex looks uninitialised to it under the sanitizers.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

#include <algorithm>
#include <cstdint>

#include "parsimony/configs/errors.h"
#include "parsimony/configs/pattern_impl.h"

namespace parsimony {

namespace {

constexpr size_t kMaxLength = 1000;
constexpr uint64_t kMaxStates = 3000;  // std::regex copies what {m,n} repeats, and recurses over it
constexpr size_t kMaxName = 4096;

/// The pattern's length times its repetitions: no fewer states than the automaton will have.
uint64_t states(std::string_view text) {
  uint64_t count = text.size();
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '{') continue;
    uint64_t largest = 1;
    uint64_t number = 0;
    for (++i; i < text.size() && text[i] != '}'; ++i) {
      const bool is_digit = text[i] >= '0' && text[i] <= '9';
      number =
          is_digit ? std::min(number * 10 + static_cast<uint64_t>(text[i] - '0'), kMaxStates) : 0;
      largest = std::max(largest, number);
    }
    count = std::min(count * largest, 2 * kMaxStates);
  }
  return count;
}

std::regex compile(const std::string& text) {
#ifdef __GLIBCXX__
  // Breadth first: the time is polynomial and the stack does not grow with the name.
  return std::regex(text, std::regex::ECMAScript | std::regex_constants::__polynomial);
#else
  return std::regex(text, std::regex::ECMAScript);
#endif
}

std::string_view explain(std::regex_constants::error_type code) {
  if (code == std::regex_constants::error_paren)
    return "parentheses do not match, or there is nothing to repeat";
  if (code == std::regex_constants::error_brack) return "brackets do not match";
  if (code == std::regex_constants::error_brace) return "braces do not match";
  if (code == std::regex_constants::error_badbrace) return "found no number in braces";
  if (code == std::regex_constants::error_badrepeat) return "there is nothing to repeat";
  if (code == std::regex_constants::error_escape) return "the escape is unknown or incomplete";
  if (code == std::regex_constants::error_range) return "the range in brackets is not ascending";
  if (code == std::regex_constants::error_ctype) return "the character class is unknown";
  if (code == std::regex_constants::error_backref ||
      code == std::regex_constants::error_complexity) {
    return "back-references are not supported";
  }
  return "not a regular expression";
}

}  // namespace

Pattern::Pattern(const std::string& text, std::string_view place) {
  if (text.size() > kMaxLength || states(text) > kMaxStates) {
    throw errors::bad_pattern(place, text.substr(0, 40) + "…", "it is too large");
  }
  try {
    regex_ = compile(text);
  } catch (const std::regex_error& error) {
    throw errors::bad_pattern(place, text, explain(error.code()));
  }
}

bool Pattern::matches(const std::string& name) const {
  return name.size() <= kMaxName &&
         std::regex_search(name, regex_, std::regex_constants::match_continuous);
}

}  // namespace parsimony
