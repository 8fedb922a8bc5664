// What a match says of axes: letters, where they stand and what pins them.
#include <absl/container/inlined_vector.h>

#include <algorithm>
#include <cctype>

#include "parsimony/graph/errors.h"
#include "parsimony/graph/operators/factor.h"
#include "parsimony/graph/operators/match.h"

namespace parsimony {
namespace {

using notation::Alternative;
using notation::Operand;

bool contains(const std::vector<std::string>& list, const MatchedLetter& letter) {
  return std::any_of(list.begin(), list.end(), [&](const std::string& name) {
    // An ellipsis' letters carry their position behind its name.
    return letter.name == name ||
           (letter.ellipsis && letter.name.size() > name.size() && letter.name.starts_with(name) &&
            std::isdigit(static_cast<unsigned char>(letter.name[name.size()])));
  });
}

/// Marks letters that stand in one operand only: data flows along them.
void pin_lonely(const Match& match, Factors& factors) {
  struct Seen {
    const MatchedOperand* last = nullptr;
    int operands = 0;
    bool produced = false;
  };
  absl::InlinedVector<Seen, 16> seen(factors.letters.size());
  for (const MatchedOperand& operand : match.operands) {
    for (const MatchedDim& dim : operand.dims) {
      for (const int letter : dim.letters) {
        Seen& at = seen[letter];
        if (at.last != &operand) ++at.operands;
        at.last = &operand;
        at.produced = at.produced || operand.output;
      }
    }
  }
  for (size_t l = 0; l < seen.size(); ++l) {
    Letter& letter = factors.letters[l];
    letter.contracted = !seen[l].produced;
    letter.window = seen[l].operands < 2 && letter.pin.empty();
  }
}

/// Is there an operand or result that the alternative does not name, and that has more than one
/// element? It may hang together with those that it names.
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
  if (!found) throw errors::no_form_fits();
  if (has_unnamed(*found->alternative, view)) {
    return pin_operands(view, "an operand or a result more than the operator's rule follows");
  }
  factors.letters.reserve(found->letters.size());
  for (const MatchedLetter& l : found->letters) {
    Letter& letter = factors.letters.emplace_back();
    letter.name = l.name;
    letter.size = std::max<int64_t>(1, l.size);
    if (l.fixed || contains(found->alternative->pins, l)) {
      letter.pin = "axis '" + l.name + "' belongs to the operator";
    }
    letter.role = line.role_of(l.name);
    letter.mixes = contains(found->alternative->mixes, l);
  }
  pin_lonely(*found, factors);
  size_t dims = 0;
  for (const MatchedOperand& operand : found->operands) dims += operand.dims.size();
  factors.terms.reserve(dims);
  for (const MatchedOperand& operand : found->operands) {
    if (operand.pattern->divisor) factors.divisors.push_back(operand.value);
    for (size_t d = 0; d < operand.dims.size(); ++d) {
      Term term{operand.value, static_cast<int>(d), {}};
      for (const int letter : operand.dims[d].letters) {
        if (factors.letters[letter].size > 1) term.letters.push_back(letter);
      }
      if (!term.letters.empty()) factors.terms.push_back(std::move(term));
    }
  }
  return factors;
}

}  // namespace parsimony
