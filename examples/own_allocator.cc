// A custom allocator is one function: here, every layer keeps the square root of its width, rounded
// up, or half of its width, whichever is more.
#include <parsimony/pruners/allocate.h>
#include <parsimony/torch_io/prune.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "models/cifar_cnn.h"

namespace {

/// Returns how many channels each candidate loses; the criterion decides which.
std::vector<int> leave_roots(const parsimony::Request& /*request*/,
                             std::span<const parsimony::Candidate> candidates) {
  std::vector<int> counts;
  for (const parsimony::Candidate& candidate : candidates) {
    const int size = candidate.limits.size;
    const auto root = static_cast<int>(std::ceil(std::sqrt(size)));
    counts.push_back(size - std::max(root, size / 2));
  }
  return counts;
}

}  // namespace

int main() {
  examples::CifarCnn model;
  const auto config =
      parsimony::parse_config(R"([{"op_types": ["Conv2d"], "sparse_ratio": 0.1}])", "own");
  const auto pruned =
      parsimony::prune(model, torch::rand({1, 3, 32, 32}), config, {.choose = leave_roots});
  std::printf("%lld and %lld filters remain\n",
              static_cast<long long>(model->conv1->weight.size(0)),
              static_cast<long long>(model->conv2->weight.size(0)));
  const bool right = model->conv1->weight.size(0) == 16 && model->conv2->weight.size(0) == 32;
  return right && pruned.proof.holds() ? 0 : 1;
}
