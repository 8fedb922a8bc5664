// What a match says of axes: labels, where they stand and what pins them.
#include <absl/container/inlined_vector.h>

#include <algorithm>
#include <cctype>

#include "parsimony/base/errors.h"
#include "parsimony/graph/operators/factor.h"
#include "parsimony/graph/operators/match.h"

namespace parsimony {
namespace {

using notation::Alternative;
using notation::Operand;

bool contains(const std::vector<std::string>& list, const MatchedLabel& label) {
  return std::ranges::any_of(list, [&](const std::string& name) {
    // An ellipsis' labels carry their position behind its name.
    return label.name == name ||
           (label.ellipsis && label.name.size() > name.size() && label.name.starts_with(name) &&
            std::isdigit(static_cast<unsigned char>(label.name[name.size()])));
  });
}

/// Marks labels that stand in one operand only: data flows along them.
void pin_lonely(const Match& match, Factors& factors) {
  struct Seen {
    const MatchedOperand* last = nullptr;
    int operands = 0;
    bool produced = false;
  };
  absl::InlinedVector<Seen, 16> seen(factors.labels.size());
  for (const MatchedOperand& operand : match.operands) {
    for (const MatchedDim& dim : operand.dims) {
      for (const int label : dim.labels) {
        Seen& at = seen[label];
        if (at.last != &operand) ++at.operands;
        at.last = &operand;
        at.produced = at.produced || operand.output;
      }
    }
  }
  for (size_t l = 0; l < seen.size(); ++l) {
    Label& label = factors.labels[l];
    label.contracted = !seen[l].produced;
    label.window = seen[l].operands < 2 && label.pin.empty();
  }
}

/// Is there an operand or result with more than one element that the alternative does not name? It
/// may be coupled with those that it names.
bool has_unnamed(const Alternative& alternative, const NodeView& view) {
  const auto beyond = [&](const std::vector<Operand>& named, const std::vector<ValueId>& values) {
    if (!named.empty() && named.back().variadic) return false;
    for (size_t i = named.size(); i < values.size(); ++i) {
      const Shape* shape = view.shape(values[i]);
      if (values[i] != kNone && (shape == nullptr || element_count(*shape) != 1)) return true;
    }
    return false;
  };
  return beyond(alternative.inputs, view.node().inputs) ||
         beyond(alternative.outputs, view.node().outputs);
}

}  // namespace

Factors factor_line(const notation::Line& line, const NodeView& view) {
  Factors factors;
  const auto found = match(line, view);
  if (!found) throw UnsupportedError("the operands' ranks fit no form of the operator");
  if (has_unnamed(*found->alternative, view)) {
    return pin_operands(view, "an operand or a result more than the operator's rule follows");
  }
  factors.labels.reserve(found->labels.size());
  for (const MatchedLabel& l : found->labels) {
    Label& label = factors.labels.emplace_back();
    label.name = l.name;
    label.size = std::max<int64_t>(1, l.size);
    if (l.fixed || contains(found->alternative->pins, l)) {
      label.pin = "axis '" + l.name + "' belongs to the operator";
    }
    label.role = line.role_of(l.name);
    label.mixes = contains(found->alternative->mixes, l);
  }
  pin_lonely(*found, factors);
  size_t dims = 0;
  for (const MatchedOperand& operand : found->operands) dims += operand.dims.size();
  factors.terms.reserve(dims);
  for (const MatchedOperand& operand : found->operands) {
    if (operand.pattern->divisor) factors.divisors.push_back(operand.value);
    for (size_t d = 0; d < operand.dims.size(); ++d) {
      Term term{operand.value, static_cast<int>(d), {}};
      for (const int label : operand.dims[d].labels) {
        if (factors.labels[label].size > 1) term.labels.push_back(label);
      }
      if (!term.labels.empty()) factors.terms.push_back(std::move(term));
    }
  }
  return factors;
}

}  // namespace parsimony
