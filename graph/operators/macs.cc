#include "parsimony/graph/operators/macs.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "parsimony/base/ranges.h"
#include "parsimony/graph/operators/match.h"

namespace parsimony {
namespace {

constexpr int64_t kMostRepetitions = 256;

/// How often each label counts in a product of operands and labels.
std::map<int, int> labels_of(const Match& match, const std::vector<std::string>& names) {
  std::map<int, int> result;
  for (const MatchedOperand& operand : match.operands) {
    if (!contains(names, operand.pattern->name)) continue;
    std::map<int, int> here;
    for (const MatchedDim& dim : operand.dims) {
      for (const int label : dim.labels) ++here[label];
    }
    for (const auto& [label, times] : here) result[label] = std::max(result[label], times);
  }
  const auto is_operand = [&](const std::string& name) {
    const auto named = [&](const notation::Operand& operand) { return operand.name == name; };
    const auto& [inputs, outputs] = std::tie(match.alternative->inputs, match.alternative->outputs);
    return std::ranges::any_of(inputs, named) || std::ranges::any_of(outputs, named);
  };
  for (const std::string& name : names) {
    if (is_operand(name)) continue;
    for (size_t l = 0; l < match.labels.size(); ++l) {
      if (match.labels[l].name == name) ++result[static_cast<int>(l)];
    }
  }
  return result;
}

bool multiplies(const notation::Line& line) {
  return std::ranges::any_of(line.alternatives,
                             [](const notation::Alternative& each) { return !each.macs.empty(); });
}

bool is_empty(const MacsFormula::Product& product) {
  return std::ranges::any_of(product, [](const auto& factor) { return factor.size == 0; });
}

/// Sums of this many stay far from overflow.
bool is_countable(const MacsFormula::Product& product) {
  int64_t left = int64_t{1} << 50;
  for (const MacsFormula::Factor& factor : product) left /= factor.size;
  return left > 0;
}

}  // namespace

std::optional<MacsFormula> macs_formula(const NodeView& view) {
  const OpSchema* schema = followed_schema(view.node());
  if (schema == nullptr || view.has_unknown_shape()) return std::nullopt;
  std::optional<notation::Line> own;  // what was found points into it
  if (schema->line_of != nullptr) own = schema->line_of(view);
  const notation::Line* line = own ? &*own : compiled(*schema);
  if (line == nullptr || !multiplies(*line)) return std::nullopt;
  const auto found = match(*line, view);
  if (!found || found->alternative->macs.empty()) return std::nullopt;
  MacsFormula formula;
  for (const auto& names : found->alternative->macs) {
    MacsFormula::Product product;
    int64_t repeated = 1;  // as a label says that no operand has
    for (const auto& [label, times] : labels_of(*found, names)) {
      if (size_of(*found, label) == 1) continue;
      if (const auto factor = locate(*found, label)) {
        product.insert(product.end(), static_cast<size_t>(times), *factor);
      } else {
        repeated = std::min(size_of(*found, label), kMostRepetitions);
      }
    }
    if (is_empty(product)) continue;
    if (!is_countable(product)) return std::nullopt;
    formula.products.insert(formula.products.end(), static_cast<size_t>(repeated), product);
  }
  return formula;
}

int64_t macs(const NodeView& view) {
  const auto formula = macs_formula(view);
  if (!formula) return 0;
  int64_t sum = 0;
  for (const auto& product : formula->products) {
    int64_t sizes = 1;
    for (const MacsFormula::Factor& factor : product) sizes *= factor.size;
    sum += sizes;
  }
  return sum;
}

bool hides_macs(const NodeView& view) {
  if (view.node().has_subgraph) return view.node().bodies.empty();
  const OpSchema* schema = followed_schema(view.node());
  if (schema == nullptr) return !view.node().inputs.empty();  // it makes something of nothing
  const notation::Line* line = compiled(*schema);
  const bool own = schema->line_of != nullptr;
  const bool may_multiply = own || (line != nullptr && multiplies(*line));
  return may_multiply && (view.has_unknown_shape() || (!own && !macs_formula(view)));
}

}  // namespace parsimony
