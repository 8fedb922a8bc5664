#include "parsimony/report/text.h"

#include <algorithm>
#include <cstdio>
#include <utility>

namespace parsimony {
namespace {

constexpr std::string_view kGap = "  ";

/// Characters, not bytes: a minus sign has three of these.
size_t width_of(std::string_view cell) {
  return std::count_if(cell.begin(), cell.end(),
                       [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; });
}

}  // namespace

std::string percent(int64_t part, int64_t whole) {
  if (whole == 0) return "-";
  return formatted("%.1f%%", 100.0 * static_cast<double>(part) / static_cast<double>(whole));
}

std::string duration(double seconds) {
  if (seconds >= 1) return formatted("%.2f s", seconds);
  return formatted(seconds >= 0.01 ? "%.0f ms" : "%.2f ms", seconds * 1e3);
}

std::string printable(std::string_view text) {
  std::string out(text);
  std::replace_if(
      out.begin(), out.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; }, '?');
  return out;
}

std::string wrapped(const std::vector<std::string>& words, size_t begin, size_t indent,
                    size_t width) {
  std::string out;
  size_t column = begin;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string word = i + 1 < words.size() ? words[i] + "," : words[i];
    if (i > 0 && column + 1 + word.size() > width) {
      out += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (i > 0) {
      out += " ";
      ++column;
    }
    out += word;
    column += word.size();
  }
  return out;
}

Table::Table(std::vector<std::string> head, std::vector<Align> align) : align_(std::move(align)) {
  rows_.push_back(std::move(head));
}

void Table::add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }

void Table::rule() { rows_.emplace_back(); }

std::string Table::text(size_t indent) const {
  std::vector<size_t> width(align_.size(), 0);
  for (const auto& row : rows_) {
    for (size_t c = 0; c < row.size(); ++c) width[c] = std::max(width[c], width_of(row[c]));
  }
  std::string out;
  for (const auto& row : rows_) {
    std::string line(indent, ' ');
    for (size_t c = 0; c < width.size(); ++c) {
      const std::string cell = row.empty() ? std::string(width[c], '-') : row[c];
      const std::string fill(width[c] - width_of(cell), ' ');
      if (c > 0) line += kGap;
      line += align_[c] == Align::kRight ? fill + cell : cell + fill;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  return out;
}

}  // namespace parsimony
