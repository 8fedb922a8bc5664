// Regular expressions from untrusted files: RE2 takes linear time and bounded memory.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace re2 {
class RE2;
}

namespace parsimony {

class Pattern {
 public:
  /// @throws ConfigError if the pattern is not well formed, or too large
  Pattern(const std::string& text, std::string_view place);

  /// From the start of `name`, not necessarily to its end.
  bool matches(const std::string& name) const;

 private:
  std::shared_ptr<const re2::RE2> regex_;
};

}  // namespace parsimony
