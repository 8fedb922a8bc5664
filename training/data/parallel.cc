#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "parsimony/training/data/parallel_impl.h"

namespace parsimony::training {
namespace {

class Loop {
 public:
  Loop(int64_t count, const std::function<void(int64_t)>& body)
      : count_(count), failed_at_(count), body_(body) {}

  void run() {
    // What stands before a failure has been taken already, so that the lowest is found.
    for (int64_t i = next_++; i < failed_at_; i = next_++) {
      try {
        body_(i);
      } catch (...) {
        const std::lock_guard lock(mutex_);
        if (i < failed_at_) {
          failed_at_ = i;
          failure_ = std::current_exception();
        }
      }
    }
  }

  void rethrow() const {
    if (failed_at_ < count_) std::rethrow_exception(failure_);
  }

 private:
  const int64_t count_;
  std::atomic<int64_t> next_ = 0;
  std::atomic<int64_t> failed_at_;
  std::exception_ptr failure_;
  std::mutex mutex_;
  const std::function<void(int64_t)>& body_;
};

}  // namespace

void parallel_for(int64_t count, int threads, const std::function<void(int64_t)>& body) {
  const int64_t cores = std::max(1U, std::thread::hardware_concurrency());
  const int64_t workers = std::min(threads > 0 ? threads : cores, count);
  Loop loop(count, body);
  {
    std::vector<std::jthread> others;
    for (int64_t i = 1; i < workers; ++i) others.emplace_back([&loop] { loop.run(); });
    loop.run();
  }
  loop.rethrow();
}

}  // namespace parsimony::training
