#include "parsimony/graph/rule.h"

#include <absl/container/inlined_vector.h>

#include <algorithm>
#include <functional>
#include <map>
#include <tuple>
#include <utility>

#include "parsimony/graph/errors.h"
#include "parsimony/graph/match.h"
#include "parsimony/graph/own_rule.h"

namespace parsimony {
namespace {

const std::vector<notation::Line>& compiled_lines() {
  static const std::vector<notation::Line> lines = [] {
    std::vector<notation::Line> result;
    for (const Rule& rule : rule_table()) {
      result.push_back(rule.line.empty() ? notation::Line{} : notation::parse(rule.line));
    }
    return result;
  }();
  return lines;
}

void pin_whole(const NodeView& view, ValueId value, const std::string& reason, Factors& factors) {
  const Shape* shape = view.shape(value);
  if (shape == nullptr) return;
  for (size_t d = 0; d < shape->size(); ++d) {
    if ((*shape)[d] > 1)
      factors.pins.push_back({value, static_cast<int>(d), 0, (*shape)[d], reason});
  }
}

/// Pins every dimension the rule said nothing about.
void pin_unnamed(const NodeView& view, Factors& factors) {
  absl::InlinedVector<std::pair<ValueId, int>, 32> named;
  for (const Term& t : factors.terms) named.emplace_back(t.value, t.dim);
  for (const Map& m : factors.maps) {
    named.emplace_back(m.a, m.a_dim);
    named.emplace_back(m.b, m.b_dim);
  }
  for (const Pin& p : factors.pins) named.emplace_back(p.value, p.dim);
  std::sort(named.begin(), named.end());
  for (const auto* side : {&view.node().inputs, &view.node().outputs}) {
    for (const ValueId value : *side) {
      const Shape* shape = value == kNone ? nullptr : view.shape(value);
      if (shape == nullptr) continue;
      for (size_t d = 0; d < shape->size(); ++d) {
        const std::pair place(value, static_cast<int>(d));
        if ((*shape)[d] <= 1 || std::binary_search(named.begin(), named.end(), place)) continue;
        factors.pins.push_back({value, static_cast<int>(d), 0, (*shape)[d],
                                "an operand that the operator's rule does not follow"});
      }
    }
  }
}

/// An operand or result of unknown shape could be tied to anything.
bool has_unknown_shape(const NodeView& view) {
  for (const auto* side : {&view.node().inputs, &view.node().outputs}) {
    for (const ValueId value : *side) {
      if (value != kNone && view.shape(value) == nullptr) return true;
    }
  }
  return false;
}

/// Does the rule itself derive the shapes of the results? What a file only declares may be wrong,
/// and rules that walk over dimensions trust what they are given.
bool derives_results(const Rule& rule, const NodeView& view) {
  if (view.output(0) == kNone) return false;
  if (rule.infer == nullptr) return true;
  const Shapes derived = rule.infer(view);
  for (int i = 0; i < view.outputs(); ++i) {
    if (view.output(i) == kNone) continue;
    const auto at = static_cast<size_t>(i);
    if (at >= derived.size() || derived[at] != *view.out_shape(i)) return false;
  }
  return true;
}

bool makes_nothing(const NodeView& view) {
  return std::any_of(view.node().outputs.begin(), view.node().outputs.end(), [&](ValueId value) {
    return value != kNone && element_count(*view.shape(value)) == 0;
  });
}

int64_t size_of_letter(const Match& match, int letter) {
  return std::max<int64_t>(1, match.letters[static_cast<size_t>(letter)].size);
}

/// Where `letter` stands in an operand: its dimension and stride.
std::optional<MacsFormula::Factor> locate(const Match& match, int letter) {
  for (const MatchedOperand& operand : match.operands) {
    for (size_t d = 0; d < operand.dims.size(); ++d) {
      int64_t stride = 1;
      const FewInts& letters = operand.dims[d].letters;
      for (size_t i = letters.size(); i-- > 0;) {
        if (letters[i] == letter) {
          return MacsFormula::Factor{operand.value, static_cast<int>(d), stride,
                                     size_of_letter(match, letter)};
        }
        stride *= size_of_letter(match, letters[i]);
      }
    }
  }
  return std::nullopt;
}

/// How often each letter counts in a product of operands and letters.
std::map<int, int> letters_of(const Match& match, const std::vector<std::string>& names) {
  std::map<int, int> result;
  for (const MatchedOperand& operand : match.operands) {
    if (std::find(names.begin(), names.end(), operand.pattern->name) == names.end()) continue;
    std::map<int, int> here;
    for (const MatchedDim& dim : operand.dims) {
      for (const int letter : dim.letters) ++here[letter];
    }
    for (const auto& [letter, times] : here) result[letter] = std::max(result[letter], times);
  }
  const auto is_operand = [&](const std::string& name) {
    const auto named = [&](const notation::Operand& operand) { return operand.name == name; };
    const auto& [inputs, outputs] = std::tie(match.alternative->inputs, match.alternative->outputs);
    return std::any_of(inputs.begin(), inputs.end(), named) ||
           std::any_of(outputs.begin(), outputs.end(), named);
  };
  for (const std::string& name : names) {
    if (is_operand(name)) continue;
    for (size_t l = 0; l < match.letters.size(); ++l) {
      if (match.letters[l].name == name) ++result[static_cast<int>(l)];
    }
  }
  return result;
}

int64_t distinct_coordinates(const std::vector<int64_t>& kept, int64_t stride, int64_t size) {
  std::vector<bool> seen(static_cast<size_t>(size), false);
  for (const int64_t index : kept) seen[static_cast<size_t>((index / stride) % size)] = true;
  return std::count(seen.begin(), seen.end(), true);
}

}  // namespace

ValueId NodeView::input(int i) const {
  return i < inputs() ? node_.inputs[static_cast<size_t>(i)] : kNone;
}

ValueId NodeView::output(int i) const {
  return i < outputs() ? node_.outputs[static_cast<size_t>(i)] : kNone;
}

const Shape* NodeView::shape(ValueId value) const {
  if (value == kNone) return nullptr;
  const auto& shape = facts_.shapes[value];
  return shape ? &*shape : nullptr;
}

const HostTensor* NodeView::constant(int i) const {
  const ValueId value = input(i);
  if (value == kNone) return nullptr;
  const auto& constant = facts_.constants[value];
  return constant ? &*constant : nullptr;
}

bool NodeView::computed(ValueId value) const { return value != kNone && facts_.computed[value]; }

const Attribute* NodeView::find(std::string_view name) const {
  for (const auto& [key, value] : node_.attributes) {
    if (key == name) return &value;
  }
  return nullptr;
}

int64_t NodeView::attr(std::string_view name, int64_t fallback) const {
  const Attribute* found = find(name);
  if (found == nullptr) return fallback;
  const auto* value = std::get_if<int64_t>(found);
  if (value == nullptr)
    throw errors::bad_attribute(label_of(graph_, node_), name, "wanted an integer");
  return *value;
}

std::string NodeView::attr(std::string_view name, std::string_view fallback) const {
  const Attribute* found = find(name);
  const auto* value = found == nullptr ? nullptr : std::get_if<std::string>(found);
  return value == nullptr ? std::string(fallback) : *value;
}

std::vector<int64_t> NodeView::attrs(std::string_view name) const {
  const Attribute* found = find(name);
  if (found == nullptr) return {};
  const auto* value = std::get_if<std::vector<int64_t>>(found);
  if (value == nullptr) {
    throw errors::bad_attribute(label_of(graph_, node_), name, "wanted a list of integers");
  }
  return *value;
}

std::optional<std::vector<int64_t>> NodeView::attr_or_input(std::string_view name, int i) const {
  if (find(name) != nullptr) return attrs(name);
  const HostTensor* tensor = constant(i);
  if (tensor == nullptr || tensor->floating()) return std::nullopt;
  return tensor->ints;
}

void PatchView::set_attribute(std::string_view name, const std::vector<int64_t>& from,
                              const std::vector<int64_t>& to) {
  if (from == to) return;
  const auto id = before.graph().nodes.id_of(before.node());
  patches_.push_back({id, -1, std::string(name), HostTensor::vector(from), HostTensor::vector(to)});
}

void PatchView::set_number(std::string_view name, double from, double to) {
  const auto id = before.graph().nodes.id_of(before.node());
  const auto number = [](double value) { return HostTensor{DType::kFloat32, {}, {}, {value}}; };
  patches_.push_back({id, -1, std::string(name), number(from), number(to)});
}

void PatchView::set_input(int input, std::string_view name, const HostTensor& to) {
  const auto id = before.graph().nodes.id_of(before.node());
  const HostTensor* from = before.constant(input);
  set_input_of(id, input, name, from == nullptr ? HostTensor::vector({}) : *from, to);
}

void PatchView::set_input_of(NodeId node, int input, std::string_view name, const HostTensor& from,
                             const HostTensor& to) {
  // A piece shared by several readers may be asked for more than once.
  for (const Patch& patch : patches_) {
    if (patch.node == node && patch.input == input && patch.to == to) return;
  }
  patches_.push_back({node, input, std::string(name), from, to});
}

void PatchView::set_attr_or_input(std::string_view name, int input,
                                  const std::vector<int64_t>& to) {
  if (before.find(name) != nullptr) {
    set_attribute(name, before.attrs(name), to);
    return;
  }
  const HostTensor* now = after.constant(input);
  if (now != nullptr && now->ints == to) return;
  HostTensor wanted = HostTensor::vector(to);
  if (now != nullptr) wanted.dtype = now->dtype;
  set_input(input, name, wanted);
}

const Rule* find_rule(std::string_view domain, std::string_view op) {
  const std::span<const Rule> table = rule_table();
  const auto key = std::pair(domain, op);
  const auto it =
      std::lower_bound(table.begin(), table.end(), key,
                       [](const Rule& r, const auto& k) { return std::pair(r.domain, r.op) < k; });
  const bool known = it != table.end() && it->op == op && it->domain == domain;
  return known ? &*it : find_own_rule(domain, op);
}

const notation::Line* compiled(const Rule& rule) {
  if (rule.line.empty()) return nullptr;
  const Rule* const begin = rule_table().data();
  const Rule* const end = begin + rule_table().size();
  const std::less<> before;  // of pointers, wherever they point
  if (before(&rule, begin) || !before(&rule, end)) return compiled_own(rule);
  return &compiled_lines()[static_cast<size_t>(&rule - rule_table().data())];
}

Factors pin_operands(const NodeView& view, const std::string& reason) {
  Factors factors;
  for (const auto* side : {&view.node().inputs, &view.node().outputs}) {
    for (const ValueId value : *side) {
      if (value != kNone) pin_whole(view, value, reason, factors);
    }
  }
  return factors;
}

Factors factor(const NodeView& view) {
  const Node& node = view.node();
  const Rule* rule = find_rule(node.domain, node.op);
  if (node.has_subgraph) return pin_operands(view, "control flow (" + node.op + ")");
  if (rule == nullptr) return pin_operands(view, "unknown operator " + node.op);
  if (has_unknown_shape(view)) return pin_operands(view, "the shape of an operand is not known");
  if (makes_nothing(view)) return pin_operands(view, "the result is empty");
  try {
    if (rule->factor != nullptr && !derives_results(*rule, view)) {
      return pin_operands(view, "the shape of a result does not follow from the operands");
    }
    Factors factors =
        rule->factor != nullptr ? rule->factor(view) : factor_line(*compiled(*rule), view);
    pin_unnamed(view, factors);
    return factors;
  } catch (const Error& error) {
    return pin_operands(view,
                        std::string("the rule of ") + node.op + " does not fit: " + error.what());
  }
}

Effect effect_of(const NodeView& view) {
  const Rule* rule = find_rule(view.node().domain, view.node().op);
  if (rule == nullptr) return Effect::kConstant;
  return rule->effect_of != nullptr ? rule->effect_of(view) : rule->effect;
}

namespace {

bool multiplies(const notation::Line& line) {
  return std::ranges::any_of(line.alternatives,
                             [](const notation::Alternative& each) { return !each.macs.empty(); });
}

bool is_empty(const MacsFormula::Product& product) {
  return std::ranges::any_of(product, [](const auto& factor) { return factor.size == 0; });
}

/// Sums of so many stay far from overflow.
bool is_countable(const MacsFormula::Product& product) {
  int64_t left = int64_t{1} << 50;
  for (const MacsFormula::Factor& factor : product) left /= factor.size;
  return left > 0;
}

}  // namespace

std::optional<MacsFormula> macs_formula(const NodeView& view) {
  const Rule* rule = find_rule(view.node().domain, view.node().op);
  if (rule == nullptr || has_unknown_shape(view)) return std::nullopt;
  std::optional<notation::Line> own;  // what was found points into it
  if (rule->line_of != nullptr) own = rule->line_of(view);
  const notation::Line* line = own ? &*own : compiled(*rule);
  if (line == nullptr || !multiplies(*line)) return std::nullopt;
  const auto found = match(*line, view);
  if (!found || found->alternative->macs.empty()) return std::nullopt;
  MacsFormula formula;
  for (const auto& names : found->alternative->macs) {
    MacsFormula::Product product;
    for (const auto& [letter, times] : letters_of(*found, names)) {
      const auto factor =
          size_of_letter(*found, letter) == 1 ? std::nullopt : locate(*found, letter);
      if (factor) product.insert(product.end(), static_cast<size_t>(times), *factor);
    }
    if (is_empty(product)) continue;
    if (!is_countable(product)) return std::nullopt;
    formula.products.push_back(std::move(product));
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
  const Rule* rule = find_rule(view.node().domain, view.node().op);
  if (rule == nullptr) return true;
  const notation::Line* line = compiled(*rule);
  const bool own = rule->line_of != nullptr;
  const bool may_multiply = own || (line != nullptr && multiplies(*line));
  return may_multiply && (has_unknown_shape(view) || (!own && !macs_formula(view)));
}

void patch_bindings(PatchView& view) {
  const Rule* rule = find_rule(view.before.node().domain, view.before.node().op);
  if (rule == nullptr || rule->line.empty() || has_unknown_shape(view.before)) return;
  const auto found = match(*compiled(*rule), view.before);
  if (!found) return;
  for (const notation::Binding& binding : found->alternative->bindings) {
    if (binding.counts_dims || view.before.find(binding.attribute) == nullptr) continue;
    for (size_t l = 0; l < found->letters.size(); ++l) {
      if (found->letters[l].name != binding.letter) continue;
      const auto place = locate(*found, static_cast<int>(l));
      const auto* kept = place ? view.kept(place->value, place->dim) : nullptr;
      if (kept == nullptr || place->size == 1) continue;
      view.set_attribute(binding.attribute, {place->size},
                         {distinct_coordinates(*kept, place->stride, place->size)});
    }
  }
}

}  // namespace parsimony
