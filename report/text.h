// Formatting of numbers and tables as text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "parsimony/base/words.h"

namespace parsimony {

/// "25.9%" of `whole`; "-" if that is 0.
std::string percent(int64_t part, int64_t whole);

/// "0.12 ms", "34 ms" or "1.50 s".
std::string duration(double seconds);

/// Names come from files: control characters could move a terminal's cursor, so they are replaced
/// by question marks.
std::string printable(std::string_view text);

/// The words with ", " between them, in lines of at most `width`. The first begins
/// in column `begin`, the others in column `indent`.
std::string wrapped(const std::vector<std::string>& words, size_t begin, size_t indent,
                    size_t width = 100);

/// Columns as wide as their widest cell, two spaces apart.
///
///     Table table({"node", "params"}, {Table::Align::kLeft, Table::Align::kRight});
///     table.add({"conv1", with_thousands(9408)});
///     std::cout << table.text();
class Table {
 public:
  enum class Align : uint8_t { kLeft, kRight };

  Table(std::vector<std::string> head, std::vector<Align> align);

  /// As many cells as the head has.
  void add(std::vector<std::string> cells);
  /// A line of dashes before the next row.
  void rule();
  /// Lines with a newline at the end of each, `indent` spaces before.
  std::string text(size_t indent = 0) const;

 private:
  std::vector<Align> align_;
  std::vector<std::vector<std::string>> rows_;  ///< the head first; empty for a rule
};

}  // namespace parsimony
