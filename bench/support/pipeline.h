// The way of a model through the library, timed.
#pragma once

#include <chrono>
#include <ctime>
#include <string>

#include "parsimony/api/prune.h"

namespace parsimony::bench {

/// Seconds since it was made: of the wall, and of the processor in this thread. On a busy machine
/// only the second tells how much work there was.
class Clock {
 public:
  Clock() : wall_(std::chrono::steady_clock::now()), cpu_(cpu_now()) {}
  double wall() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - wall_).count();
  }
  double cpu() const { return cpu_now() - cpu_; }

 private:
  static double cpu_now() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  }

  std::chrono::steady_clock::time_point wall_;
  double cpu_;
};

struct Passage {
  double between_wall = 0;  ///< from the Graph to the edited model
  double between_cpu = 0;
  double whole_cpu = 0;  ///< with reading and writing
  Pruning pruning;
};

/// Prunes the file `in` into `out`, in this process.
Passage prune(const std::string& in, const std::string& out, const Shorthand& what);

}  // namespace parsimony::bench
