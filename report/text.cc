#include "parsimony/report/text.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <utility>
#include <vector>

#include "parsimony/report/ledger.h"

namespace parsimony {
namespace {

constexpr std::string_view kGap = "  ";

/// Counts characters, not bytes: a minus sign has three bytes.
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

namespace {

constexpr const char* kDash = "–";
constexpr const char* kMinus = "−";

std::string fixed(double value, int digits) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.*f", digits, value);
  return text.data();
}

/// Formats three significant digits, without an exponent.
std::string three(double value) {
  const double size = std::fabs(value);
  return fixed(value, size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2);
}

std::string scaled(double value, const std::array<const char*, 5>& units) {
  size_t unit = 0;
  while (value >= 999.5 && unit + 1 < units.size()) {
    value /= 1000;
    ++unit;
  }
  return (unit == 0 ? fixed(value, 0) : three(value)) + units.at(unit);
}

}  // namespace

std::string sparsity_text(double sparsity) {
  const double percent = 100 * sparsity;
  return fixed(percent, std::fabs(percent - std::round(percent)) < 1e-6 ? 0 : 1) + "%";
}

std::string accuracy_text(double share) {
  return std::isfinite(share) ? fixed(100 * share, 2) + "%" : kDash;
}

std::string perplexity_text(double perplexity) {
  return std::isfinite(perplexity) ? three(perplexity) : kDash;
}

std::string score_text(double share, const std::optional<double>& perplexity) {
  const std::string accuracy = accuracy_text(share);
  return perplexity ? accuracy + ", perplexity " + perplexity_text(*perplexity) : accuracy;
}

std::string metric_text(double value) {
  return std::isfinite(value) ? formatted("%.4g", value) : kDash;
}

std::string change_text(double change) {
  if (!std::isfinite(change)) return kDash;
  const std::string size = fixed(std::fabs(100 * change), 2);
  if (size == "0.00") return "0.00 points";
  return (change < 0 ? kMinus : "+") + size + " points";
}

std::string times_text(double ratio) {
  return std::isfinite(ratio) && ratio > 0 ? three(ratio) + "×" : kDash;
}

std::string ratio_text(double before, double after) {
  return before > 0 && after > 0 ? times_text(before / after) : kDash;
}

std::string seconds_text(double seconds) { return three(seconds) + " s"; }

std::string bytes_text(int64_t bytes) {
  return scaled(static_cast<double>(bytes), {" B", " kB", " MB", " GB", " TB"});
}

std::string macs_text(double macs) { return scaled(macs, {"", " k", " M", " G", " T"}); }

std::string milliseconds_text(double milliseconds) { return three(milliseconds) + " ms"; }

std::string ranks_text(const LedgerPoint& point) {
  const std::vector<double>& rates = point.ranks->samples_per_second;
  const auto [low, high] = std::ranges::minmax(rates);
  LedgerPoint::Phases seconds = point.train;
  if (seconds.total() == 0) seconds = point.warm_up;
  std::string text = std::to_string(rates.size()) + ", each " + fixed(low, 0) + " to " +
                     fixed(high, 0) + " samples per second; " +
                     fixed(100 * seconds.exchange / seconds.total(), 1) +
                     "% of the time waiting for gradients";
  const char* gap = ": ";
  for (const int64_t bytes : point.ranks->step_bytes) {
    text += std::exchange(gap, ", then ") + bytes_text(bytes);
  }
  return text + " a step";
}

std::string scientific_text(double value) {
  if (!std::isfinite(value)) return "infinite";
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.1e", value);
  return text.data();
}

}  // namespace parsimony
