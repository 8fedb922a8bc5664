// A bounded single-producer, single-consumer queue.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <utility>

namespace parsimony::training {

template <typename Item>
class BoundedQueue {
 public:
  explicit BoundedQueue(size_t most) : most_(most) {}

  /// Waits for space. @returns false if the consumer has cancelled
  bool push(Item item) {
    std::unique_lock lock(mutex_);
    room_.wait(lock, [this] { return items_.size() < most_ || cancelled_; });
    if (cancelled_) return false;
    items_.push_back(std::move(item));
    filled_.notify_one();
    return true;
  }

  /// Ends the stream; `why` is rethrown to the consumer after the items.
  void end(std::exception_ptr why = nullptr) {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    failure_ = std::move(why);
    filled_.notify_one();
  }

  /// Waits for an item. @returns empty at the end; throws the exception passed to end()
  std::optional<Item> pop() {
    std::unique_lock lock(mutex_);
    filled_.wait(lock, [this] { return !items_.empty() || ended_; });
    if (items_.empty()) {
      if (failure_) std::rethrow_exception(failure_);
      return {};
    }
    std::optional<Item> item(std::move(items_.front()));
    items_.pop_front();
    room_.notify_one();
    return item;
  }

  /// Tells the producer to stop.
  void cancel() {
    const std::lock_guard lock(mutex_);
    cancelled_ = true;
    room_.notify_one();
  }

 private:
  const size_t most_;
  std::mutex mutex_;
  std::condition_variable room_;
  std::condition_variable filled_;
  std::deque<Item> items_;
  bool ended_ = false;
  bool cancelled_ = false;
  std::exception_ptr failure_;
};

}  // namespace parsimony::training
