// HTML from strings that may hold anything.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace parsimony {

/// For text and for quoted attributes.
std::string escaped(std::string_view text);

/// JSON for a script element: no character that could end it.
std::string script_safe(std::string_view json);

using Cells = std::vector<std::string>;

/// A table with its name for those who do not see it. Of each row the first `left` cells are text,
/// the others numbers.
std::string html_table(std::string_view caption, const Cells& names, size_t left,
                       const std::vector<Cells>& rows);

}  // namespace parsimony
