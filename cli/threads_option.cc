#include "parsimony/cli/threads_option.h"

#include <charconv>

#include "parsimony/engines/errors.h"

namespace parsimony::cli {
namespace {

// More only cost time, whatever the machine.
constexpr int kMostThreads = 256;

constexpr const char* kMeaning =
    "Threads that run the network: a number, or auto (the default), which measures";

}  // namespace

void add_threads_option(CLI::App& command, std::string& text) {
  command.add_option("--threads", text, kMeaning)->type_name("N");
}

void add_threads_option(CLI::App& command, std::optional<int>& threads) {
  const auto parse = [&threads](const std::string& text) { threads = parse_threads(text); };
  command.add_option_function<std::string>("--threads", parse, kMeaning)->type_name("N");
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
