// Formatting of numbers and tables as text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "parsimony/base/words.h"

namespace parsimony {

struct LedgerPoint;

/// Returns "25.9%" of `whole`; "-" if that is 0.
std::string percent(int64_t part, int64_t whole);

/// Returns "0.12 ms", "34 ms" or "1.50 s".
std::string duration(double seconds);

/// Replaces control characters by question marks, as names come from files and could move a
/// terminal's cursor.
std::string printable(std::string_view text);

/// Joins words with ", " into lines of at most `width`. The first begins in column `begin`, the
/// others in column `indent`.
std::string wrapped(const std::vector<std::string>& words, size_t begin, size_t indent,
                    size_t width = 100);

/// A table whose columns are as wide as their widest cell, two spaces apart.
///
///     Table table({"node", "params"}, {Table::Align::kLeft, Table::Align::kRight});
///     table.add({"conv1", with_thousands(9408)});
///     std::cout << table.text();
class Table {
 public:
  enum class Align : uint8_t { kLeft, kRight };

  Table(std::vector<std::string> head, std::vector<Align> align);

  /// Adds a row, which must have as many cells as the head.
  void add(std::vector<std::string> cells);
  /// Adds a line of dashes before the next row.
  void rule();
  /// Returns the lines, indented by `indent` spaces and each with a newline.
  std::string text(size_t indent = 0) const;

 private:
  std::vector<Align> align_;
  std::vector<std::vector<std::string>> rows_;  ///< the head first; empty for a rule
};

/// Returns "50%"; "12.5%" if needed.
std::string sparsity_text(double sparsity);
/// Returns "47.10%" of the examples.
std::string accuracy_text(double share);
/// Returns "4.52".
std::string perplexity_text(double perplexity);
/// Returns "47.10%"; "47.10%, perplexity 4.52" for a language model.
std::string score_text(double share, const std::optional<double>& perplexity);
/// Returns "0.4123", as the scale is unknown; "–" without a value.
std::string metric_text(double value);
/// Returns "−1.18 points", a difference of two accuracies.
std::string change_text(double change);
/// Returns "2.00×", the factor by which `after` is smaller; "–" if one of them is not positive.
std::string ratio_text(double before, double after);
std::string times_text(double ratio);
/// Returns "122 s", "9.1 s", "0.18 s".
std::string seconds_text(double seconds);
/// Returns "8.49 MB", with powers of ten.
std::string bytes_text(int64_t bytes);
/// Returns "7.71 M", multiply-adds.
std::string macs_text(double macs);
/// Returns "0.83 ms".
std::string milliseconds_text(double milliseconds);
/// Returns "2, each 498 to 512 samples per second; 21.0% of the time waiting for gradients: 8.49
/// MB, then 2.12 MB a step". @param point  trained by several ranks
std::string ranks_text(const LedgerPoint& point);
/// Returns "3.1e-07".
std::string scientific_text(double value);

}  // namespace parsimony
