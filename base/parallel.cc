#include "parsimony/base/parallel.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace parsimony {

void parallel_for(int64_t count, int threads, const std::function<void(int64_t)>& body) {
  std::atomic<int64_t> next = 0;
  std::atomic<int64_t> failed_at = count;
  std::exception_ptr failure;
  std::mutex mutex;
  const auto run = [&] {
    // Indices before a failure have already been taken, so that the lowest failure is found.
    for (int64_t i = next++; i < failed_at; i = next++) {
      try {
        body(i);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (i < failed_at) {
          failed_at = i;
          failure = std::current_exception();
        }
      }
    }
  };
  const int64_t cores = std::max(1U, std::thread::hardware_concurrency());
  const int64_t workers = std::min(threads > 0 ? threads : cores, count);
  {
    std::vector<std::jthread> others;
    for (int64_t i = 1; i < workers; ++i) others.emplace_back(run);
    run();
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace parsimony
