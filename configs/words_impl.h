// Keywords of a configuration and their values.
#pragma once

#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "parsimony/configs/errors.h"

namespace parsimony {

template <typename Value, size_t N>
using WordTable = std::array<std::pair<std::string_view, Value>, N>;

/// @throws ConfigError that lists the known keywords
template <typename Value, size_t N>
Value parse_word(std::string_view text, std::string_view place, const WordTable<Value, N>& words) {
  std::vector<std::string_view> known;
  for (const auto& [word, value] : words) {
    if (word == text) return value;
    known.push_back(word);
  }
  throw errors::unknown_word(place, text, known);
}

template <typename Value, size_t N>
std::string_view word_of(Value wanted, const WordTable<Value, N>& words) {
  for (const auto& [word, value] : words) {
    if (value == wanted) return word;
  }
  return {};
}

}  // namespace parsimony
