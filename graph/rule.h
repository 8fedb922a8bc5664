// An operator as the analysis knows it. Regular operators are one line of notation; the irregular
// ones bring functions of their own from graph/rules/.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "parsimony/graph/factors.h"
#include "parsimony/graph/graph.h"
#include "parsimony/graph/notation.h"

namespace parsimony {

/// Shapes and elements of all values, as far as known.
using ValueShapes = IdVector<ValueId, std::optional<Shape>>;
using ValueConstants = IdVector<ValueId, std::optional<HostTensor>>;

/// What inference knows of every value: its shape and, where it is small and fixed, its elements.
struct Facts {
  ValueShapes shapes;
  ValueConstants constants;
  /// The value is computed from shapes and integers alone; its nodes take no part in coupling.
  IdVector<ValueId, bool> computed;
};

/// A node together with what is known about its operands.
class NodeView {
 public:
  NodeView(const Graph& graph, const Node& node, const Facts& facts)
      : graph_(graph), node_(node), facts_(facts) {}

  /// The same knowledge, about another node of the graph.
  NodeView beside(NodeId other) const { return {graph_, graph_.node(other), facts_}; }

  const Graph& graph() const { return graph_; }
  const Node& node() const { return node_; }
  int opset() const { return node_.opset; }

  int inputs() const { return static_cast<int>(node_.inputs.size()); }
  int outputs() const { return static_cast<int>(node_.outputs.size()); }
  ValueId input(int i) const;   ///< kNone beyond the end
  ValueId output(int i) const;  ///< kNone beyond the end
  bool has_input(int i) const { return input(i) != kNone; }

  /// Null if unknown or absent.
  const Shape* shape(ValueId value) const;
  const Shape* in_shape(int i) const { return shape(input(i)); }
  const Shape* out_shape(int i) const { return shape(output(i)); }
  const HostTensor* constant(int i) const;
  bool computed(ValueId value) const;

  const Attribute* find(std::string_view name) const;
  int64_t attr(std::string_view name, int64_t fallback) const;
  std::string attr(std::string_view name, std::string_view fallback) const;
  std::vector<int64_t> attrs(std::string_view name) const;  ///< empty if absent
  /// Integers that older opsets keep in an attribute and newer ones in input `i`.
  std::optional<std::vector<int64_t>> attr_or_input(std::string_view name, int i) const;

 private:
  const Graph& graph_;
  const Node& node_;
  const Facts& facts_;
};

/// Shapes of the outputs, as far as known.
using Shapes = std::vector<std::optional<Shape>>;
using InferFn = Shapes (*)(const NodeView&);
using FactorFn = Factors (*)(const NodeView&);

/// What a removed slice of the inputs becomes in the output.
enum class Effect : uint8_t {
  kZero,       ///< zero if every operand that has the axis is zero there: ReLU, Add, Conv
  kProduct,    ///< zero if any operand is zero there: Mul
  kShifted,    ///< a product behind which something moves zero: RNN with Sigmoid
  kZeros,      ///< zero whatever the operands are: ConstantOfShape
  kQuotient,   ///< zero if the numerator is; a removed divisor is not computable: Div
  kConstant,   ///< some other constant: Sigmoid(0) = 0.5
  kUndefined,  ///< infinite or not a number: Log(0)
};

/// A letter that is summed over is gone as soon as one operand is zero there.
constexpr bool is_product(Effect effect) {
  return effect == Effect::kProduct || effect == Effect::kShifted;
}

/// A change to one integer operand or attribute that the smaller shapes ask for.
struct Patch {
  NodeId node = kNone;
  int input = -1;    ///< operand to replace; -1: the attribute `what`
  std::string what;  ///< operand or attribute name
  HostTensor from;
  HostTensor to;
};

/// What a patch function sees: the node before and after, and which indices stay.
class PatchView {
 public:
  PatchView(const NodeView& node_before, const NodeView& node_after,
            const std::function<const std::vector<int64_t>*(ValueId, int)>& kept,
            std::vector<Patch>& patches)
      : before(node_before), after(node_after), kept_(kept), patches_(patches) {}

  const NodeView& before;
  const NodeView& after;

  /// Ascending kept indices of a dimension; null if it stays whole.
  const std::vector<int64_t>* kept(ValueId value, int dim) const { return kept_(value, dim); }

  /// Asks for other integers in attribute `name`; an empty `to` removes the attribute.
  void set_attribute(std::string_view name, const std::vector<int64_t>& from,
                     const std::vector<int64_t>& to);
  /// Asks for another number in attribute `name`; `from` is what it is, be it by default.
  void set_number(std::string_view name, double from, double to);
  void set_input(int input, std::string_view name, const HostTensor& to);
  /// Replaces an operand of another node, behind the same integers: a piece of a Concat.
  void set_input_of(NodeId node, int input, std::string_view name, const HostTensor& from,
                    const HostTensor& to);
  /// Sets the integers that stand in attribute `name` or in operand `input`, whichever there is;
  /// does nothing if they already do.
  void set_attr_or_input(std::string_view name, int input, const std::vector<int64_t>& to);

 private:
  const std::function<const std::vector<int64_t>*(ValueId, int)>& kept_;
  std::vector<Patch>& patches_;
};

using PatchFn = void (*)(PatchView&);

struct Rule {
  std::string_view op;
  std::string_view line = {};  ///< notation; several alternatives separated by '|'
  Effect effect = Effect::kZero;
  InferFn infer = nullptr;                         ///< by default the line's
  FactorFn factor = nullptr;                       ///< by default the line's
  PatchFn patch = nullptr;                         ///< beside the attributes that the line binds
  Effect (*effect_of)(const NodeView&) = nullptr;  ///< where it depends on operands: Clip
  notation::Line (*line_of)(const NodeView&) = nullptr;  ///< where an attribute is the line: Einsum
  std::string_view domain = {};
};

/// Every operator known; sorted by domain and name.
std::span<const Rule> rule_table();

/// Null for an unknown operator.
const Rule* find_rule(std::string_view domain, std::string_view op);

/// The compiled line of `rule`; null if it has none.
const notation::Line* compiled(const Rule& rule);

/// Factors of any node. Unknown operators pin what they touch, and so does a rule that fails.
Factors factor(const NodeView& view);

/// Factors that let no operand and no result of the node shrink.
Factors pin_operands(const NodeView& view, const std::string& reason);

Effect effect_of(const NodeView& view);

/// The axes whose sizes make the node's multiply-adds: a sum of products.
struct MacsFormula {
  /// Kept coordinates of one letter: of dimension `dim`, those of (index / stride) % size.
  struct Factor {
    ValueId value = kNone;
    int dim = 0;
    int64_t stride = 1;
    int64_t size = 1;
  };
  using Product = std::vector<Factor>;
  std::vector<Product> products;
};

/// Empty where the operator has no multiply-adds, or more than 2^50.
std::optional<MacsFormula> macs_formula(const NodeView& view);

/// Multiply-adds of one node; 0 where the operator has none.
int64_t macs(const NodeView& view);

/// May the node have multiply-adds that `macs` does not know? Its operator or a shape is unknown, a
/// form of it has no formula, there are more than 2^50, or its bodies are not followed.
bool hides_macs(const NodeView& view);

/// Attributes that the line binds to the size of a letter, changed if the letter shrank.
void patch_bindings(PatchView& view);

}  // namespace parsimony
