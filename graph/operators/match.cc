#include "parsimony/graph/operators/match.h"

#include <absl/container/inlined_vector.h>

#include <algorithm>
#include <exception>
#include <limits>

#include "parsimony/graph/attributes.h"
#include "parsimony/graph/errors.h"

namespace parsimony {
namespace {

using notation::Alternative;
using notation::Dim;
using notation::Operand;

bool is_numeral(const std::string& label) { return label[0] >= '0' && label[0] <= '9'; }

/// A product that is too large to be a size stays too large.
int64_t times(int64_t a, int64_t b) {
  int64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? std::numeric_limits<int64_t>::max() : product;
}

/// Numbers of dimensions by the name of their ellipsis. A line has two or three.
class Lengths {
 public:
  /// Null if there is none.
  const int64_t* find(std::string_view ellipsis) const {
    for (const auto& [name, length] : all_) {
      if (name == ellipsis) return &length;
    }
    return nullptr;
  }
  int64_t& operator[](std::string_view ellipsis) {
    for (auto& [name, length] : all_) {
      if (name == ellipsis) return length;
    }
    return all_.emplace_back(ellipsis, 0).second;
  }

 private:
  absl::InlinedVector<std::pair<std::string_view, int64_t>, 4> all_;
};

/// Computes one match; a new one per alternative.
class Matcher {
 public:
  Matcher(const Alternative& alternative, const NodeView& view, bool with_outputs)
      : alternative_(alternative), view_(view), with_outputs_(with_outputs) {
    match_.alternative = &alternative;
  }

  std::optional<Match> run() {
    match_.operands.reserve(static_cast<size_t>(view_.inputs()) + view_.outputs());
    match_.labels.reserve(8);
    if (!bind_operands() || !bind_counts()) return std::nullopt;
    for (MatchedOperand& operand : match_.operands) {
      if (!expand(operand)) return std::nullopt;
    }
    bind_sizes();
    solve();
    return std::move(match_);
  }

 private:
  bool bind_operands() {
    if (!bind_side(alternative_.inputs, false, view_.inputs())) return false;
    return bind_side(alternative_.outputs, true, view_.outputs());
  }

  bool bind_side(const std::vector<Operand>& patterns, bool output, int available) {
    for (int i = 0; i < available || i < static_cast<int>(patterns.size()); ++i) {
      const bool beyond = i >= static_cast<int>(patterns.size());
      if (beyond && (patterns.empty() || !patterns.back().variadic)) break;
      const Operand& pattern = beyond ? patterns.back() : patterns[i];
      const ValueId value = output ? view_.output(i) : view_.input(i);
      if (value == kNone) {
        if (output || pattern.optional) continue;
        return false;
      }
      if (!output && view_.shape(value) == nullptr) return false;
      match_.operands.push_back({value, &pattern, output, {}});
    }
    return true;
  }

  /// `|..a| = attr axis`: the axis counts in the first operand that has the ellipsis.
  bool bind_counts() {
    for (const notation::Binding& binding : alternative_.bindings) {
      if (!binding.counts_dims) continue;
      const MatchedOperand& first = match_.operands.front();
      const auto rank = static_cast<int64_t>(view_.shape(first.value)->size());
      int64_t axis = view_.attr(binding.attribute, binding.fallback);
      if (axis < 0) axis += rank;
      if (axis < 0 || axis > rank) return false;
      counts_[binding.label] = axis;
    }
    return true;
  }

  int64_t rank_of(const MatchedOperand& operand, bool& known) const {
    const Shape* shape = view_.shape(operand.value);
    known = shape != nullptr && (!operand.output || with_outputs_);
    return known ? static_cast<int64_t>(shape->size()) : 0;
  }

  /// Aligns the pattern's dimensions with the operand's, right-aligned if it broadcasts.
  bool expand(MatchedOperand& operand) {
    bool known = false;
    int64_t rank = rank_of(operand, known);
    std::vector<Dim> reversed;
    for (const notation::Swap& swap : alternative_.swaps) {
      if (swap.operand == operand.pattern->name && view_.attr(swap.attribute, 0) == 1) {
        reversed.assign(operand.pattern->dims.rbegin(), operand.pattern->dims.rend());
      }
    }
    const std::vector<Dim>& pattern = reversed.empty() ? operand.pattern->dims : reversed;
    int64_t fixed = 0;
    const std::string* open = nullptr;
    for (const Dim& dim : pattern) {
      if (!dim.ellipsis) {
        ++fixed;
      } else if (const int64_t* count = counts_.find(dim.labels[0]); count != nullptr) {
        fixed += *count;
      } else {
        open = &dim.labels[0];
      }
    }
    if (!known) {
      rank = fixed + (open != nullptr ? longest_[*open] : 0);
    } else if (open == nullptr ? (operand.pattern->broadcast ? rank > fixed : rank != fixed)
                               : rank < fixed && !operand.pattern->broadcast) {
      return false;
    }
    const int64_t open_length = std::max<int64_t>(0, rank - fixed);
    if (open != nullptr) longest_[*open] = std::max(longest_[*open], open_length);
    lay(pattern, open_length, rank, operand);
    return true;
  }

  void lay(const std::vector<Dim>& pattern, int64_t open_length, int64_t rank,
           MatchedOperand& operand) {
    operand.dims.reserve(pattern.size() + open_length);
    for (const Dim& dim : pattern) {
      if (!dim.ellipsis) {
        MatchedDim matched;
        for (const std::string& label : dim.labels) matched.labels.push_back(id_of(label));
        operand.dims.push_back(std::move(matched));
        continue;
      }
      const int64_t* count = counts_.find(dim.labels[0]);
      const int64_t length = count != nullptr ? *count : open_length;
      for (int64_t from_right = length; from_right-- > 0;) {
        const int id = id_of(dim.labels[0] + std::to_string(from_right));
        match_.labels[id].ellipsis = true;
        operand.dims.emplace_back().labels.push_back(id);
      }
    }
    while (static_cast<int64_t>(operand.dims.size()) > rank)
      operand.dims.erase(operand.dims.begin());
  }

  /// kNone if the label did not occur. A line has a handful of labels.
  int find(const std::string& label) const {
    for (size_t l = 0; l < match_.labels.size(); ++l) {
      if (match_.labels[l].name == label) return static_cast<int>(l);
    }
    return kNone;
  }

  int id_of(const std::string& label) {
    if (const int known = find(label); known != kNone) return known;
    const bool number = is_numeral(label);
    match_.labels.push_back({label, number ? std::stol(label) : kNotDetermined, false, number});
    return static_cast<int>(match_.labels.size()) - 1;
  }

  void bind_sizes() {
    for (const notation::Binding& binding : alternative_.bindings) {
      if (binding.counts_dims) continue;
      const int label = id_of(binding.label);  // it may stand in no operand, but count in MACs
      const int64_t size = view_.attr(binding.attribute, binding.fallback);
      if (size > 0) match_.labels[label].size = size;
      const bool left_open = size == 0 && binding.fallback == 0;  // the operands tell
      if (size < 0 || (size == 0 && !left_open)) {
        throw errors::bad_attribute(view_.label(), binding.attribute, "must be positive");
      }
    }
  }

  /// Repeats until no dimension determines a further label; then checks every dimension.
  void solve() {
    bool changed = true;
    while (changed) {
      changed = false;
      for_each_dim([&](MatchedOperand& operand, size_t d, int64_t size) {
        changed |= deduce(operand, d, size);
      });
    }
    for_each_dim([&](MatchedOperand& operand, size_t d, int64_t size) { check(operand, d, size); });
  }

  template <typename Visit>
  void for_each_dim(Visit&& visit) {
    for (MatchedOperand& operand : match_.operands) {
      bool known = false;
      rank_of(operand, known);
      if (!known) continue;
      const Shape& shape = *view_.shape(operand.value);
      for (size_t d = 0; d < shape.size(); ++d) visit(operand, d, shape[d]);
    }
  }

  bool may_broadcast(const MatchedOperand& operand, const MatchedDim& dim) const {
    if (operand.output) return false;
    return operand.pattern->broadcast ||
           (dim.labels.size() == 1 && match_.labels[dim.labels[0]].ellipsis);
  }

  bool deduce(MatchedOperand& operand, size_t d, int64_t size) {
    MatchedDim& dim = operand.dims[d];
    if (size == 1 && may_broadcast(operand, dim)) {
      const bool changed = !dim.labels.empty();
      dim.labels.clear();
      return changed;
    }
    int unknown = kNone;
    int64_t product = 1;
    for (const int label : dim.labels) {
      const int64_t known = match_.labels[label].size;
      if (known != kNotDetermined) {
        product = times(product, known);
      } else if (unknown != kNone) {
        return false;
      } else {
        unknown = label;
      }
    }
    if (unknown == kNone || product == 0 || size % product != 0) return false;
    match_.labels[unknown].size = size / product;
    return true;
  }

  void check(const MatchedOperand& operand, size_t d, int64_t size) const {
    const MatchedDim& dim = operand.dims[d];
    if (dim.labels.empty()) return;
    int64_t product = 1;
    bool open = false;
    for (const int label : dim.labels) {
      const int64_t known = match_.labels[label].size;
      open = open || known == kNotDetermined;
      if (known != kNotDetermined) product = times(product, known);
    }
    if (product == size || (open && product != 0 && size % product == 0)) return;
    throw errors::shape_mismatch(view_.label(),
                                 operand.pattern->name + "[" + std::to_string(d) + "] of \"" +
                                     view_.graph().value(operand.value).name + "\"",
                                 std::to_string(product), std::to_string(size));
  }

  const Alternative& alternative_;
  const NodeView& view_;
  const bool with_outputs_;
  Match match_;
  Lengths counts_;   // ellipses whose length an attribute tells
  Lengths longest_;  // the others, as far as seen
};

std::optional<Match> match_side(const notation::Line& line, const NodeView& view,
                                bool with_outputs) {
  std::exception_ptr refused;
  for (const Alternative& alternative : line.alternatives) {
    if (!holds(alternative, view.node())) continue;
    try {
      if (auto result = Matcher(alternative, view, with_outputs).run()) return result;
    } catch (const ModelError&) {
      if (&alternative == &line.alternatives.back()) throw;  // else another form may fit
      if (!refused) refused = std::current_exception();
    }
  }
  if (refused) std::rethrow_exception(refused);
  return std::nullopt;
}

}  // namespace

int64_t size_of(const Match& match, int label) {
  return std::max<int64_t>(1, match.labels[label].size);
}

bool holds(const Alternative& alternative, const Node& node) {
  if (node.opset < alternative.since || node.opset > alternative.until) return false;
  return std::ranges::all_of(alternative.conditions, [&](const notation::Condition& condition) {
    if (find_attribute(node, condition.attribute) == nullptr) return condition.or_absent;
    const auto is_it = [&](int64_t number) { return std::to_string(number) == condition.value; };
    if (const auto* number = attr_if<int64_t>(node, condition.attribute)) return is_it(*number);
    if (const auto* list = attr_if<std::vector<int64_t>>(node, condition.attribute)) {
      return std::ranges::all_of(*list, is_it);
    }
    return attr(node, condition.attribute, std::string_view{}) == condition.value;
  });
}

std::optional<LabelPosition> locate(const Match& match, int label) {
  for (const MatchedOperand& operand : match.operands) {
    for (size_t d = 0; d < operand.dims.size(); ++d) {
      int64_t stride = 1;
      const FewInts& labels = operand.dims[d].labels;
      for (size_t i = labels.size(); i-- > 0;) {
        if (labels[i] == label) {
          return LabelPosition{operand.value, static_cast<int>(d), stride, size_of(match, label)};
        }
        stride *= size_of(match, labels[i]);
      }
    }
  }
  return std::nullopt;
}

std::optional<Match> match(const notation::Line& line, const NodeView& view) {
  return match_side(line, view, true);
}

Shapes infer_line(const notation::Line& line, const NodeView& view) {
  Shapes shapes(view.outputs());
  const auto found = match_side(line, view, false);
  if (!found) return shapes;
  for (const MatchedOperand& operand : found->operands) {
    if (!operand.output) continue;
    Shape shape;
    shape.reserve(operand.dims.size());
    bool known = true;
    for (const MatchedDim& dim : operand.dims) {
      int64_t size = 1;
      for (const int label : dim.labels) {
        const MatchedLabel& l = found->labels[label];
        // A label that only met broadcast ones has size 1.
        const bool is_known = l.size != kNotDetermined;
        known = known && (is_known || l.ellipsis);
        size = times(size, is_known ? l.size : 1);
      }
      shape.push_back(size);
    }
    if (!known) continue;
    for (int i = 0; i < view.outputs(); ++i) {
      if (view.output(i) == operand.value) shapes[i] = shape;
    }
  }
  return shapes;
}

}  // namespace parsimony
