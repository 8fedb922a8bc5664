// Capabilities of the terminal.
#pragma once

#include <string>
#include <string_view>

namespace parsimony::cli {

/// Standard output or standard error.
enum class Stream : int { kOut = 1, kErr = 2 };

bool is_terminal(Stream stream);

/// Is it a terminal with colours enabled?
/// @source https://no-color.org
bool has_colours(Stream stream);

enum class Colour { kBold, kRed, kGreen, kYellow };

/// `text` in that colour if the stream shows colours.
std::string coloured(std::string_view text, Colour colour, Stream stream);

}  // namespace parsimony::cli
