// Terminal output: colours, and a progress bar for work that takes longer than a second.
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

/// Standard output or standard error.
enum class Stream : int { kOut = 1, kErr = 2 };

bool is_terminal(Stream stream);

/// Returns whether the stream is a terminal with colours enabled.
/// @source https://no-color.org
bool has_colours(Stream stream);

enum class Colour { kBold, kRed, kGreen, kYellow };

/// Returns `text` in that colour if the stream shows colours.
std::string coloured(std::string_view text, Colour colour, Stream stream);
/// "note: " in yellow, for standard output.
std::string note_mark();

/// A progress bar on standard error: the current stage and its duration. Nothing appears within the
/// first second, nor if standard error is not a terminal; the bar is erased at the end.
class Progress {
 public:
  /// `stages` in the expected order; if empty, an indeterminate bar.
  Progress(std::vector<std::string> stages, bool visible);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Ends the previous stage.
  void begin(std::string_view stage);
  /// Ends the last stage and erases the bar.
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
