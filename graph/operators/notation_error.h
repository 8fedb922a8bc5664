// What is wrong with a line of notation, and where.
#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>

namespace parsimony::notation {

class SyntaxError : public std::invalid_argument {
 public:
  SyntaxError(std::string_view line, size_t at, const std::string& fault)
      : std::invalid_argument("operator line \"" + std::string(line) + "\", column " +
                              std::to_string(at + 1) + ": " + fault),
        at_(at),
        fault_(fault) {}

  size_t at() const { return at_; }  ///< of the line's characters
  const std::string& fault() const { return fault_; }

 private:
  size_t at_;
  std::string fault_;
};

}  // namespace parsimony::notation
