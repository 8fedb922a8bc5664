// Range helpers that the standard library lacks before C++23.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <ranges>
#include <vector>

namespace parsimony {

/// Is an element of the range equal to `value`?
template <std::ranges::input_range Range, typename T>
bool contains(const Range& range, const T& value) {
  return std::ranges::find(range, value) != std::ranges::end(range);
}

/// Sorts, and leaves one of equal elements.
template <typename Sequence>
void sort_unique(Sequence& items) {
  std::ranges::sort(items);
  items.erase(std::unique(items.begin(), items.end()), items.end());
}

/// begin, begin + 1, …, end - 1; `begin` is at most `end`.
inline std::vector<int64_t> successive(int64_t begin, int64_t end) {
  std::vector<int64_t> numbers(end - begin);
  std::iota(numbers.begin(), numbers.end(), begin);
  return numbers;
}

}  // namespace parsimony
