// Texts made of words, numbers and lists.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace parsimony {

/// A piece from which texts are put together: a text, a character or an integer.
template <typename T>
concept Piece = std::convertible_to<const T&, std::string_view> ||
    (std::integral<T> && !std::same_as<T, bool>);

/// The pieces one after the other, integers in decimal digits.
template <Piece... Pieces>
std::string str_cat(const Pieces&... pieces) {
  std::string text;
  const auto append = [&text](const auto& piece) {
    using Type = std::remove_cvref_t<decltype(piece)>;
    if constexpr (std::convertible_to<const Type&, std::string_view>) {
      text += std::string_view(piece);
    } else if constexpr (std::same_as<Type, char>) {
      text += piece;
    } else {
      text += std::to_string(piece);
    }
  };
  (append(pieces), ...);
  return text;
}

/// Formats `number` as printf does.
std::string formatted(const char* format, double number);

/// "1,234,567"
std::string with_thousands(int64_t number);

/// "1 group", "2 groups": the number and the word, with a plural s unless the number is 1.
std::string counted(int64_t number, std::string_view word);

/// The words with ", " between them; with more than `most`, the rest is counted: "a, b and 7 more".
std::string listed(const std::vector<std::string>& words, size_t most);

}  // namespace parsimony
