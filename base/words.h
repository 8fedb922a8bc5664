// Numbers and lists in messages.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace parsimony {

/// As printf writes it.
std::string formatted(const char* format, double number);

/// "1,234,567"
std::string with_thousands(int64_t number);

/// "1 group", "2 groups": the number and the word, with a plural s unless the number is 1.
std::string counted(int64_t number, std::string_view word);

/// The words with ", " between them; with more than `most`, the rest is counted: "a, b and 7 more".
std::string listed(const std::vector<std::string>& words, size_t most);

}  // namespace parsimony
