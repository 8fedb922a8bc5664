#include "parsimony/cli/terminal.h"

#include <unistd.h>

#include <cstdlib>

namespace parsimony::cli {
namespace {

std::string_view variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string_view{} : value;
}

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
  return variable("NO_COLOR").empty() && variable("TERM") != "dumb" && is_terminal(stream);
}

std::string coloured(std::string_view text, Colour colour, Stream stream) {
  if (!has_colours(stream)) return std::string(text);
  return code_of(colour) + std::string(text) + "\033[0m";
}

}  // namespace parsimony::cli
