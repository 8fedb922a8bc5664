// Lists of successive numbers.
#pragma once

#include <cstdint>
#include <numeric>
#include <vector>

namespace parsimony {

/// begin, begin + 1, …, end - 1; `begin` is at most `end`.
inline std::vector<int64_t> successive(int64_t begin, int64_t end) {
  std::vector<int64_t> numbers(end - begin);
  std::iota(numbers.begin(), numbers.end(), begin);
  return numbers;
}

}  // namespace parsimony
