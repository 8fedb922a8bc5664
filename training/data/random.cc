#include "parsimony/training/data/random.h"

#include <cstddef>
#include <numeric>
#include <utility>

namespace parsimony::training {

std::vector<int64_t> permutation(int64_t count, Random random) {
  std::vector<int64_t> order(count);
  std::iota(order.begin(), order.end(), int64_t{0});
  for (size_t i = order.size(); i > 1; --i) {
    std::swap(order[i - 1], order[random.below(static_cast<uint32_t>(i))]);
  }
  return order;
}

}  // namespace parsimony::training
