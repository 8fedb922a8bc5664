// Regular expressions from a file that may be hostile: neither backtracking nor deep recursion.
#pragma once

#include <regex>
#include <string>
#include <string_view>

namespace parsimony {

class Pattern {
 public:
  /// @throws ConfigError if the pattern is not well formed, or too large
  Pattern(const std::string& text, std::string_view place);

  /// From the start of `name`, not necessarily to its end.
  bool matches(const std::string& name) const;

 private:
  std::regex regex_;
};

}  // namespace parsimony
