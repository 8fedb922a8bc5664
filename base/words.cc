#include "parsimony/base/words.h"

#include <algorithm>
#include <cstdio>

namespace parsimony {

std::string formatted(const char* format, double number) {
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, format, number);
  return buffer;
}

std::string with_thousands(int64_t number) {
  std::string digits = std::to_string(number);
  const size_t first = number < 0 ? 1 : 0;
  for (size_t i = digits.size(); i > first + 3; i -= 3) digits.insert(i - 3, ",");
  return digits;
}

std::string counted(int64_t number, std::string_view word) {
  return with_thousands(number) + " " + std::string(word) + (number == 1 ? "" : "s");
}

std::string listed(const std::vector<std::string>& words, size_t most) {
  std::string out;
  for (size_t i = 0; i < std::min(most, words.size()); ++i) {
    if (i > 0) out += ", ";
    out += words[i];
  }
  if (words.size() > most) out += " and " + std::to_string(words.size() - most) + " more";
  return out;
}

}  // namespace parsimony
