#include "parsimony/base/errors.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <system_error>
#include <vector>

namespace parsimony {
namespace {

constexpr size_t kMaxCandidates = 3;
constexpr size_t kMaxLength = 256;  // names come from files; the distance is quadratic
constexpr size_t kMinFragment = 3;  // shorter fragments are part of almost any name

std::string lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

/// Insertions, deletions, replacements and swaps of neighbours that turn `a` into `b`.
size_t damerau_levenshtein(std::string_view a, std::string_view b) {
  std::vector<size_t> before_last(b.size() + 1);
  std::vector<size_t> last(b.size() + 1);
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    before_last.swap(last);
    last.swap(row);
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, replaced});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before_last[j - 2] + 1);
      }
    }
  }
  return row[b.size()];
}

/// 0 for the same letters in another case, then by edits, then prefixes, then other fragments.
/// Empty if the two have nothing to do with each other. Both are lower case.
std::optional<size_t> distance(std::string_view expected, std::string_view candidate) {
  const size_t tolerated = std::max<size_t>(1, std::min(expected.size(), candidate.size()) / 3);
  const size_t shorter = std::min(expected.size(), candidate.size());
  const size_t longer = std::max(expected.size(), candidate.size());
  if (longer <= kMaxLength && longer - shorter <= tolerated) {
    const size_t edits = damerau_levenshtein(expected, candidate);
    if (edits <= tolerated && edits < longer) return edits;
  }
  if (shorter < kMinFragment) return std::nullopt;
  const std::string_view part = expected.size() < candidate.size() ? expected : candidate;
  const std::string_view whole = expected.size() < candidate.size() ? candidate : expected;
  const size_t at = whole.find(part);
  if (at == std::string_view::npos) return std::nullopt;
  return kMaxLength + (at == 0 ? 1 : 2);
}

template <typename Word>
std::string row_of(std::span<const Word> words, std::string_view before_last) {
  std::string text;
  for (size_t i = 0; i < words.size(); ++i) {
    if (i > 0) text += i + 1 == words.size() ? before_last : ", ";
    text += in_quotes(words[i]);
  }
  return text;
}

}  // namespace

std::string in_quotes(std::string_view text) { return '"' + std::string(text) + '"'; }

std::string one_of(std::span<const std::string_view> words) { return row_of(words, " or "); }

std::string each_of(std::span<const std::string> words) { return row_of(words, " and "); }

std::string did_you_mean(std::string_view expected, std::span<const std::string> candidates) {
  const std::string lower_expected = lower(expected);
  std::vector<std::string_view> nearest;
  size_t best = kMaxLength + kMinFragment;
  for (const std::string& candidate : candidates) {
    const std::optional<size_t> found = distance(lower_expected, lower(candidate));
    if (!found || *found > best) continue;
    if (*found < best) nearest.clear();
    best = *found;
    const bool known = std::find(nearest.begin(), nearest.end(), candidate) != nearest.end();
    if (!known && nearest.size() < kMaxCandidates) nearest.push_back(candidate);
  }
  return nearest.empty() ? "" : " Did you mean " + one_of(nearest) + "?";
}

namespace errors {

ModelError bad_dimension(std::string_view tensor, std::string_view dims) {
  const std::string where = tensor.empty() ? "" : str_cat("tensor ", in_quotes(tensor), ": ");
  return ModelError(where, "wrong dims ", dims,
                    ": dimensions are 0 or more and have at most 2^48 elements together");
}

IoError cannot_read(std::string_view path, int cause) {
  return IoError(path, ": cannot be read: ", std::generic_category().message(cause));
}

IoError cannot_write(std::string_view path, int cause) {
  return IoError(path, ": cannot be written: ", std::generic_category().message(cause));
}

}  // namespace errors
}  // namespace parsimony
