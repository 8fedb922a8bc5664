// Ranks as threads of one process, which meet in memory.
#pragma once

#include <exception>
#include <functional>
#include <thread>
#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <vector>

#include "parsimony/training/ranks/group.h"

namespace parsimony::test {

/// Runs `work` once for each rank, and throws what any of them threw.
/// @param shares_memory  as of RankGroup
inline void on_ranks(int size, const std::function<void(const training::RankGroup&)>& work,
                     double timeout = 120, bool shares_memory = true) {
  const auto store = c10::make_intrusive<c10d::HashStore>();
  std::vector<std::exception_ptr> failures(static_cast<size_t>(size));
  {
    std::vector<std::jthread> ranks;
    for (int rank = 0; rank < size; ++rank) {
      ranks.emplace_back([&, rank] {
        try {
          work(training::RankGroup(store,
                                   {.rank = rank, .size = size, .settings = {.timeout = timeout}},
                                   shares_memory));
        } catch (...) {
          failures[static_cast<size_t>(rank)] = std::current_exception();
        }
      });
    }
  }
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
}

}  // namespace parsimony::test
