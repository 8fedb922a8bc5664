// The contents of two files, compared.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>

namespace parsimony::test {

/// Some bytes from `at` on, in hexadecimal.
inline std::string bytes_at(std::string_view content, size_t at) {
  constexpr size_t kShown = 16;
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const char byte : content.substr(at, kShown)) {
    const auto value = static_cast<unsigned char>(byte);
    text += {' ', kDigits[value >> 4], kDigits[value & 15]};
  }
  return text.empty() ? " end" : text;
}

/// Says where they differ first, in place of printing megabytes:
///
///     EXPECT_TRUE(same_bytes(read_file(a), read_file(b)));
inline testing::AssertionResult same_bytes(std::string_view a, std::string_view b) {
  if (a == b) return testing::AssertionSuccess();
  const auto [in_a, in_b] = std::ranges::mismatch(a, b);
  const auto at = static_cast<size_t>(in_a - a.begin());
  return testing::AssertionFailure()
         << a.size() << " and " << b.size() << " bytes differ from byte " << at
         << " on:" << bytes_at(a, at) << " |" << bytes_at(b, at);
}

}  // namespace parsimony::test
