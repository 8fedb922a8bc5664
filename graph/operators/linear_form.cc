#include "parsimony/graph/operators/linear_form.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "parsimony/base/ranges.h"
#include "parsimony/graph/attributes.h"
#include "parsimony/graph/operators/match.h"

namespace parsimony {
namespace {

using notation::Alternative;
using notation::Dim;
using notation::Operand;

bool has_label(const Operand& operand, const std::string& label) {
  return std::ranges::any_of(operand.dims,
                             [&](const Dim& dim) { return contains(dim.labels, label); });
}

/// The operand's pattern, expanded to its rank; empty if the rank does not match.
std::vector<const Dim*> layout(const Alternative& form, const Node& node, const Operand& pattern,
                               size_t rank) {
  std::vector<const Dim*> dims;
  for (const Dim& dim : pattern.dims) dims.push_back(&dim);
  for (const notation::Swap& swap : form.swaps) {
    if (swap.operand == pattern.name && attr(node, swap.attribute, 0) == 1) {
      std::ranges::reverse(dims);
    }
  }
  const auto wide = static_cast<int64_t>(rank);
  for (const notation::Binding& binding : form.bindings) {
    if (!binding.counts_dims) continue;
    int64_t count = attr(node, binding.attribute, binding.fallback);
    if (count < 0) count += wide;
    if (count < 0 || count > wide) return {};
    const auto at = std::ranges::find_if(
        dims, [&](const Dim* dim) { return dim->ellipsis && dim->labels[0] == binding.label; });
    if (at == dims.end()) continue;
    const Dim* counted = *at;
    dims.insert(dims.erase(at), static_cast<size_t>(count), counted);
    // Sizes that are counted are bound.
    const auto open =
        std::ranges::find_if(dims, [&](const Dim* dim) { return dim->ellipsis && dim != counted; });
    if (open == dims.end()) return dims.size() == rank ? dims : std::vector<const Dim*>{};
  }
  const auto open =
      std::find_if(dims.rbegin(), dims.rend(), [](const Dim* dim) { return dim->ellipsis; });
  if (open == dims.rend()) return dims.size() == rank ? dims : std::vector<const Dim*>{};
  if (rank + 1 < dims.size()) return {};
  const Dim* dim = *open;
  const auto at = dims.erase(std::next(open).base());
  dims.insert(at, rank - dims.size(), dim);
  return dims;
}

/// The first alternative that holds for the node and allows the operand's rank.
const Alternative* form_of(const Node& node, int operand, size_t rank) {
  const notation::Line* line = compiled(schema_of(node));
  if (line == nullptr || operand < 0) return nullptr;
  for (const Alternative& form : line->alternatives) {
    const auto present = [&](size_t i) {
      return i < node.inputs.size() && node.inputs[i] != kNone;
    };
    bool fits = holds(form, node) && static_cast<size_t>(operand) < form.inputs.size() &&
                node.inputs.size() <= form.inputs.size();
    for (size_t i = 0; i < form.inputs.size(); ++i) {
      fits = fits && (form.inputs[i].optional || present(i));
    }
    if (fits && !layout(form, node, form.inputs[operand], rank).empty()) {
      return &form;
    }
  }
  return nullptr;
}

/// The number of groups according to the notation's roles; 1 without that role.
int64_t groups_of(const Node& node, const Alternative& form) {
  const notation::Line& line = *compiled(schema_of(node));
  for (const notation::Binding& binding : form.bindings) {
    if (line.role_of(binding.label) == notation::LabelRole::kGroup)
      return attr(node, binding.attribute, binding.fallback);
  }
  return 1;
}

}  // namespace

std::vector<int> weight_operands(const Node& node) {
  std::vector<int> operands;
  const unsigned weights = schema_of(node).linear.weights;
  for (int i = 0; i < static_cast<int>(node.inputs.size()); ++i) {
    const bool may_be = i < 32 && (weights >> i & 1U) != 0;
    if (may_be && node.inputs[i] != kNone) operands.push_back(i);
  }
  return operands;
}

std::string layer_word(size_t rank) {
  return rank == 2 ? "Linear" : "Conv" + std::to_string(rank - 2) + "d";
}

std::optional<LinearForm> linear_form(const Node& node, int weight, size_t rank) {
  const Linear& linear = schema_of(node).linear;
  const bool takes_it = weight >= 0 && weight < 32 && (linear.weights >> weight & 1U) != 0;
  if (!takes_it || linear.kind == LinearKind::kLookup || linear.kind == LinearKind::kContraction) {
    return std::nullopt;
  }
  const Alternative* form = form_of(node, weight, rank);
  if (form == nullptr) return std::nullopt;
  LinearForm result{.kind = linear.kind,
                    .data = weight == 0 ? 1 : 0,
                    .bias = linear.bias,
                    .in_axis = -1,
                    .out_axis = -1,
                    .kernel = {},
                    .groups = groups_of(node, *form),
                    .plain = linear.plain};
  const Operand& data = form->inputs[result.data];
  const Operand& answer = form->outputs[0];
  const auto dims = layout(*form, node, form->inputs[weight], rank);
  for (size_t d = 0; d < dims.size(); ++d) {
    const auto axis = static_cast<int>(d);
    bool summed = false;
    bool made = false;
    bool elsewhere = false;
    for (const std::string& label : dims[d]->labels) {
      const bool read = has_label(data, label);
      const bool written = has_label(answer, label);
      summed = summed || (read && !written);
      made = made || (written && !read);
      elsewhere = elsewhere || read || written;
    }
    if (summed) result.in_axis = axis;
    if (!summed && made && result.out_axis < 0) result.out_axis = axis;
    if (!elsewhere && dims[d]->ellipsis) result.kernel.push_back(axis);
  }
  // A recurrence has its gates before the axis that it contracts, whether input or state.
  if (linear.kind == LinearKind::kRecurrence) result.in_axis = static_cast<int>(rank) - 1;
  if (result.in_axis < 0) return std::nullopt;
  return result;
}

std::optional<int> axis_along(const Node& node, int operand, int along, size_t rank) {
  const Alternative* form = form_of(node, operand, rank);
  if (form == nullptr || along < 0 || static_cast<size_t>(along) >= form->inputs.size()) return {};
  const auto& vector = form->inputs[along].dims;
  if (vector.size() != 1) return {};
  const auto dims = layout(*form, node, form->inputs[operand], rank);
  for (size_t d = 0; d < dims.size(); ++d) {
    if (dims[d]->labels == vector[0].labels) return static_cast<int>(d);
  }
  return {};
}

namespace {

constexpr int64_t kMostRepetitions = 256;

/// Counts how often each label occurs in a product of operands and labels.
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
