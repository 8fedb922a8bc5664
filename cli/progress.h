// A bar on standard error for what takes longer than a second.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

namespace parsimony::cli {

/// Shows which stage runs and for how long. Nothing appears within the first second, nor where
/// standard error is no terminal; what appeared is wiped at the end.
class Progress {
 public:
  /// `stages` in the order in which they are expected, or none: then a mark only moves.
  Progress(std::vector<std::string> stages, bool visible);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// The stage before ends.
  void begin(std::string_view stage);
  /// The last stage ends and the bar goes.
  void finish();

 private:
  void draw_until_finished();
  std::string line() const;

  std::vector<std::string> stages_;
  std::chrono::steady_clock::time_point started_;
  std::mutex mutex_;
  std::condition_variable finished_;
  bool is_finished_ = false;
  std::string stage_;
  size_t reached_ = 0;  ///< stages that have begun
  std::thread drawer_;
};

/// Runs `work` and adds its seconds under `stage`.
template <typename Work>
auto timed(std::vector<std::pair<std::string, double>>& timings, std::string stage, Work&& work) {
  const auto begin = std::chrono::steady_clock::now();
  const auto note = [&] {
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin;
    timings.emplace_back(std::move(stage), passed.count());
  };
  if constexpr (std::is_void_v<decltype(work())>) {
    work();
    note();
  } else {
    auto result = work();
    note();
    return result;
  }
}

}  // namespace parsimony::cli
