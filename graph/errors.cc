#include "parsimony/graph/errors.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <system_error>
#include <utility>

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
std::optional<size_t> distance(std::string_view wanted, std::string_view candidate) {
  const size_t tolerated = std::max<size_t>(1, std::min(wanted.size(), candidate.size()) / 3);
  const size_t shorter = std::min(wanted.size(), candidate.size());
  const size_t longer = std::max(wanted.size(), candidate.size());
  if (longer <= kMaxLength && longer - shorter <= tolerated) {
    const size_t edits = damerau_levenshtein(wanted, candidate);
    if (edits <= tolerated && edits < longer) return edits;
  }
  if (shorter < kMinFragment) return std::nullopt;
  const std::string_view part = wanted.size() < candidate.size() ? wanted : candidate;
  const std::string_view whole = wanted.size() < candidate.size() ? candidate : wanted;
  const size_t at = whole.find(part);
  if (at == std::string_view::npos) return std::nullopt;
  return kMaxLength + (at == 0 ? 1 : 2);
}

std::string at_node(std::string_view node) { return "node " + in_quotes(node) + ": "; }

}  // namespace

std::string in_quotes(std::string_view text) { return '"' + std::string(text) + '"'; }

std::string did_you_mean(std::string_view wanted, std::span<const std::string> candidates) {
  const std::string lower_wanted = lower(wanted);
  std::vector<std::string_view> nearest;
  size_t best = kMaxLength + kMinFragment;
  for (const std::string& candidate : candidates) {
    const std::optional<size_t> found = distance(lower_wanted, lower(candidate));
    if (!found || *found > best) continue;
    if (*found < best) nearest.clear();
    best = *found;
    const bool known = std::find(nearest.begin(), nearest.end(), candidate) != nearest.end();
    if (!known && nearest.size() < kMaxCandidates) nearest.push_back(candidate);
  }
  if (nearest.empty()) return {};
  std::string text = " Did you mean " + in_quotes(nearest[0]);
  for (size_t i = 1; i < nearest.size(); ++i) {
    text += (i + 1 == nearest.size() ? " or " : ", ") + in_quotes(nearest[i]);
  }
  return text + "?";
}

namespace errors {

ModelError shape_mismatch(std::string_view node, std::string_view what, std::string_view wanted,
                          std::string_view found) {
  return ModelError(at_node(node) + "wrong dims: " + std::string(what) + ": wanted " +
                    std::string(wanted) + ", found " + std::string(found));
}

ShapeError guess_does_not_fit(const ShapeError& error, int64_t size) {
  return {error.node(), std::string(error.what()) + "; " + std::to_string(size) +
                            " was taken for sizes of the inputs that the file leaves open, " +
                            "--input gives them"};
}

ModelError bad_dimension(std::string_view tensor, std::string_view dims) {
  const std::string where = tensor.empty() ? "" : "tensor " + in_quotes(tensor) + ": ";
  return ModelError(where + "wrong dims " + std::string(dims) +
                    ": dimensions are 0 or more and have at most 2^48 elements together");
}

ModelError missing_tensor(std::string_view node, std::string_view tensor) {
  return ModelError(at_node(node) + "tensor " + in_quotes(tensor) +
                    " is neither a graph input, nor an initializer, nor the output of a node");
}

ModelError not_in_model(std::string_view kind, std::string_view name) {
  return ModelError("the plan changes " + std::string(kind) + " " + in_quotes(name) +
                    ", which the model does not have: it is a plan of another model");
}

ModelError cycle(std::string_view node) {
  return ModelError(at_node(node) + "the graph has a cycle: the node needs its own output");
}

ModelError produced_twice(std::string_view node, std::string_view tensor) {
  return ModelError(at_node(node) + "output " + in_quotes(tensor) +
                    " is already a graph input, an initializer or the output of another node");
}

ModelError nan_weight(std::string_view tensor, int64_t index) {
  return ModelError("tensor " + in_quotes(tensor) + ": element " + std::to_string(index) +
                    " is not a number; channels with such weights cannot be ranked");
}

ModelError bad_attribute(std::string_view node, std::string_view attribute, std::string_view why) {
  return ModelError(at_node(node) + "attribute " + in_quotes(attribute) + ": " + std::string(why));
}

UnsupportedError not_numbers(std::string_view tensor, std::string_view dtype) {
  return UnsupportedError("tensor " + in_quotes(tensor) + ": wanted numbers, found element type " +
                          std::string(dtype));
}

ConfigError known_operator(std::string_view domain, std::string_view op) {
  const std::string name = (domain.empty() ? "" : std::string(domain) + "::") + std::string(op);
  return ConfigError("operator \"" + name + "\" has a rule already");
}

ConfigError bad_rule(std::string_view op, std::string_view why) {
  return ConfigError("rule of \"" + std::string(op) + "\": " + std::string(why));
}

ModelError wrong_bytes(std::string_view tensor, int64_t wanted, int64_t given) {
  return ModelError("tensor \"" + std::string(tensor) + "\": its elements are " +
                    std::to_string(wanted) + " bytes, found " + std::to_string(given));
}

IoError cannot_read(std::string_view path, int cause) {
  return IoError(std::string(path) + ": cannot be read: " + std::generic_category().message(cause));
}

IoError cannot_write(std::string_view path, int cause) {
  return IoError(std::string(path) +
                 ": cannot be written: " + std::generic_category().message(cause));
}

}  // namespace errors
}  // namespace parsimony
