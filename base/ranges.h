// What the standard's algorithms over ranges lack before C++23.
#pragma once

#include <algorithm>
#include <ranges>

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

}  // namespace parsimony
