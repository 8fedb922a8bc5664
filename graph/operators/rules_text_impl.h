// The text of files of rules: words and their places.
#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

namespace parsimony::rules {

inline constexpr std::string_view kBlank = " \t\r";

/// A place in the file, counted from 1.
struct Place {
  size_t line = 1;
  size_t column = 1;
};

struct Token {
  std::string_view text;
  Place place;
};

/// One line of the file without its comment, read from left to right.
class Reading {
 public:
  Reading(std::string_view line, size_t number) : line_(line.substr(0, line.find('#'))) {
    place_.line = number;
    line_ = line_.substr(0, line_.find_last_not_of(kBlank) + 1);
    skip_blank();
  }

  bool at_end() const { return at_ == line_.size(); }
  Place place() const { return {place_.line, at_ + 1}; }
  char next() const { return line_[at_]; }

  Token word() {
    const Place begin = place();
    const size_t end = std::min(line_.find_first_of(kBlank, at_), line_.size());
    const std::string_view text = line_.substr(at_, end - at_);
    at_ = end;
    skip_blank();
    return {text, begin};
  }

  Token rest() {
    const Token all{line_.substr(at_), place()};
    at_ = line_.size();
    return all;
  }

 private:
  void skip_blank() { at_ = std::min(line_.find_first_not_of(kBlank, at_), line_.size()); }

  std::string_view line_;
  size_t at_ = 0;
  Place place_;
};

/// The notation of one operator, which may stand on several lines.
class NotationText {
 public:
  void append(const Token& part, std::string_view joint) {
    if (!text_.empty()) text_ += joint;
    parts_.push_back({text_.size(), part.text.size(), part.place});
    text_ += part.text;
  }

  const std::string& text() const { return text_; }

  /// Where a character of the text stands; in a joint, behind the part in front.
  Place place_of(size_t at) const {
    const auto behind = std::ranges::upper_bound(parts_, at, {}, &Part::offset);
    const Part& part = *std::prev(behind);
    return {part.place.line, part.place.column + std::min(at - part.offset, part.size)};
  }

 private:
  struct Part {
    size_t offset, size;
    Place place;
  };

  std::string text_;
  std::vector<Part> parts_;
};

}  // namespace parsimony::rules
