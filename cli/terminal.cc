#include "parsimony/cli/terminal.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "parsimony/base/files.h"

namespace parsimony::cli {
namespace {

const char* code_of(Colour colour) {
  switch (colour) {
    case Colour::kRed:
      return "\033[1;31m";
    case Colour::kGreen:
      return "\033[1;32m";
    case Colour::kYellow:
      return "\033[33m";
    case Colour::kBold:
      break;
  }
  return "\033[1m";
}

}  // namespace

bool is_terminal(Stream stream) { return isatty(static_cast<int>(stream)) == 1; }

bool has_colours(Stream stream) {
  return environment("NO_COLOR").empty() && environment("TERM") != "dumb" && is_terminal(stream);
}

std::string coloured(std::string_view text, Colour colour, Stream stream) {
  if (!has_colours(stream)) return std::string(text);
  return code_of(colour) + std::string(text) + "\033[0m";
}

std::string note_mark() { return coloured("note: ", Colour::kYellow, Stream::kOut); }

namespace {

using std::chrono::milliseconds;
constexpr milliseconds kPatience{1000};
constexpr milliseconds kInterval{100};
constexpr size_t kBarWidth = 20;
constexpr const char* kWipe = "\r\033[K";

void to_terminal(const std::string& text) {
  std::fputs(text.c_str(), stderr);
  std::fflush(stderr);
}

}  // namespace

Progress::Progress(std::vector<std::string> stages, bool visible)
    : stages_(std::move(stages)), started_(std::chrono::steady_clock::now()) {
  if (visible && is_terminal(Stream::kErr)) {
    drawer_ = std::thread([this] { draw_until_finished(); });
  }
}

Progress::~Progress() { finish(); }

void Progress::begin(std::string_view stage) {
  const std::lock_guard lock(mutex_);
  stage_ = stage;
  const auto at = std::find(stages_.begin(), stages_.end(), stage);
  if (at != stages_.end()) reached_ = static_cast<size_t>(at - stages_.begin()) + 1;
}

void Progress::finish() {
  if (!drawer_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    is_finished_ = true;
  }
  finished_.notify_all();
  drawer_.join();
}

void Progress::draw_until_finished() {
  std::unique_lock lock(mutex_);
  if (finished_.wait_for(lock, kPatience, [this] { return is_finished_; })) return;
  do {
    to_terminal(kWipe + line());
  } while (!finished_.wait_for(lock, kInterval, [this] { return is_finished_; }));
  to_terminal(kWipe);
}

std::string Progress::line() const {
  const auto passed = std::chrono::steady_clock::now() - started_;
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(passed).count();
  std::string bar(kBarWidth, '.');
  if (stages_.empty()) {
    bar[static_cast<size_t>(passed / kInterval) % kBarWidth] = '#';  // the progress is unknown
  } else {
    const size_t over = reached_ == 0 ? 0 : reached_ - 1;  // a stage counts once it is over
    const size_t full = kBarWidth * over / stages_.size();
    bar.replace(0, full, full, '#');
  }
  return "[" + bar + "] " + stage_ + ", " + std::to_string(seconds) + " s";
}

}  // namespace parsimony::cli
