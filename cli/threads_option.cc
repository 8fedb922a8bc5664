#include "parsimony/cli/threads_option.h"

#include <charconv>

#include "parsimony/engines/errors.h"

namespace parsimony::cli {
namespace {

// More only cost time, whatever the machine.
constexpr int kMostThreads = 256;

}  // namespace

void add_threads_option(CLI::App& command, std::string& text) {
  command
      .add_option("--threads", text,
                  "Threads that run the network: a number, or auto (the default), which measures")
      ->type_name("N");
}

std::optional<int> parse_threads(const std::string& text) {
  if (text.empty() || text == "auto") return std::nullopt;
  int threads = 0;
  const char* end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, threads);
  if (error != std::errc{} || stopped != end || threads < 1 || threads > kMostThreads) {
    throw machine::errors::bad_threads(text);
  }
  return threads;
}

}  // namespace parsimony::cli
