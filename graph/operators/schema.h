// Everything known about an operator, in one row: its notation, its behaviour on zeros, its
// weights, its traits, and functions for what the notation cannot express. Rooms that treat some
// operators differently ask the row and never compare names.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "parsimony/graph/graph.h"

namespace parsimony {

namespace notation {
struct Line;
}

class PatchView;  // of operators/node_view.h, as is NodeView
struct Factors;   // of operators/factor.h

/// Shapes of the outputs, as far as known.
using Shapes = std::vector<std::optional<Shape>>;
using InferFn = Shapes (*)(const NodeView&);
using FactorFn = Factors (*)(const NodeView&);
using PatchFn = void (*)(PatchView&);

/// The state of an output slice if the corresponding slices of the inputs are zero; see Transfer in
/// zero.h.
enum class ZeroBehaviour : uint8_t {
  /// Zero if every operand is zero there, and as a whole if it lacks the axis: ReLU, Add. Operators
  /// without a line only move elements: operands without the axis do not count.
  kZero,
  kProduct,     ///< zero if any factor is zero there, and everything that is added: Mul, Conv
  kShifted,     ///< a product followed by something that does not keep zero: RNN with Sigmoid
  kZeros,       ///< zero whatever the operands are: ConstantOfShape
  kQuotient,    ///< zero if the numerator is; a removed divisor is not computable: Div
  kFirst,       ///< zero if the first operand is, whatever the others are: PRelu
  kChoice,      ///< zero if all operands are but the first, which chooses among them: Where
  kNormalised,  ///< gain · (x - mean) / deviation + shift: BatchNormalization
  kConstant,    ///< some other constant: Sigmoid(0) = 0.5
  kUndefined,   ///< infinite or not a number: Log(0)
};

/// A contracted label vanishes as soon as one operand is zero along it.
constexpr bool is_product(ZeroBehaviour zero) {
  return zero == ZeroBehaviour::kProduct || zero == ZeroBehaviour::kShifted;
}

/// Traits by which operators are treated differently; one bit each.
enum Trait : unsigned {
  kAdds = 1U << 0,            ///< the sum of two operands
  kMultiplies = 1U << 1,      ///< the product of two operands, element by element
  kDivides = 1U << 2,         ///< the quotient of two operands
  kRectifies = 1U << 3,       ///< max(x, 0)
  kCopies = 1U << 4,          ///< the same elements in the same order, possibly of another type
  kPermutes = 1U << 5,        ///< the same elements, axes in another order
  kTakesApart = 1U << 6,      ///< slices of the first operand; the others are control operands
  kHomogeneous = 1U << 7,     ///< f(s·x) = s·f(x), apart from other operands
  kSums = 1U << 8,            ///< contracts an axis; commutes with a factor of its operand
  kReduces = 1U << 9,         ///< reduces axes to one number
  kAttends = 1U << 10,        ///< attention, whose scale is 1/sqrt(head_dim) unless it is given
  kPairs = 1U << 11,          ///< products of two activations, as in decomposed attention
  kProbabilities = 1U << 12,  ///< the last layer of a classifier
  kReadsSizes = 1U << 13,     ///< reads shapes, not elements
  kFills = 1U << 14,          ///< creates a tensor of a given shape
  kRescales = 1U << 15,       ///< operands after the first are sizes and scales
  kChooses = 1U << 16,        ///< selects among numbers: discontinuous in its operands
  kPads = 1U << 17,           ///< fills elements that do not come from the operand
  kReadsIntegers = 1U << 18,  ///< accepts weights stored as integers of any width
  kDraws = 1U << 19,          ///< draws random numbers, others in each run
  kTakesElement = 1U << 20,   ///< one tensor of a list, which are all alike for the analysis
  kRearranges = 1U << 21,     ///< the elements of its operands, each once, at other places
  kLikelihoods = 1U << 22,    ///< a probability at each element, of one event each
  kOutcomes = 1U << 23,       ///< along the axis that it mixes, each element is one of the outcomes
  kMatches = 1U << 24,        ///< true where its two operands are equal
  kScatters = 1U << 25,       ///< writes the last operand into the first one, or adds it there
};

/// The way in which a layer applies its weights.
enum class LinearKind : uint8_t {
  kNotLinear,
  kMatrixProduct,
  kConvolution,  ///< w [out, in / groups, ..kernel]
  kTransposedConvolution,
  kContraction,  ///< as given by the equation: Einsum
  kLookup,       ///< rows of a table
  kRecurrence,   ///< w [.., gates · out, in], one matrix for the input, one for the state
  kAttention,    ///< the projection inside an attention operator
};

/// The weights of a layer. The meaning of their axes follows from the notation: `linear_form`.
struct Linear {
  LinearKind kind = LinearKind::kNotLinear;
  unsigned weights = 0;         ///< operands that may be the weight; one bit each
  int bias = -1;                ///< the bias operand; -1: none
  bool plain = false;           ///< floating point, with nothing applied after the sum
  std::string_view layer = {};  ///< its name in configurations: "Conv", "Gemm"
};

/// Operands and traits of a recurrent layer, beside its matrices; -1 if absent.
struct Recurrence {
  int lengths = -1;     ///< operand: how long each sequence is
  int initial = -1;     ///< operand: the state before the first step
  bool resets = false;  ///< what the last gate takes of the state is scaled by another gate
};

/// Weight operands of a normalisation; -1 if absent.
struct Norm {
  int gain = -1;
  int shift = -1;
  int statistics = -1;  ///< running mean and variance: this operand and the next
};

/// A quantised operand: w[i] represents (w[i] - zero_point) · scale; without scale if that is
/// applied later.
struct IntegerOperand {
  int operand = -1;
  int scale = -1;
  int zero_point = -1;
  /// Attribute with the number of bits of a code, where elements hold several; zero points are
  /// packed likewise.
  std::string_view bits = {};
};

enum class ResultType : uint8_t {
  kOfFirst,   ///< of the first present operand
  kOfSecond,  ///< the first is a condition
  kBool,
  kInt64,
  kSecondIsInt64,  ///< the first result has the operand's type, the second is its index
};

struct OpSchema {
  std::string_view op = {};
  std::string_view line = {};  ///< notation; several alternatives separated by '|'
  ZeroBehaviour zero = ZeroBehaviour::kZero;
  Linear linear = {};
  Recurrence recurrence = {};
  Norm norm = {};
  IntegerOperand integers = {};  ///< if a weight may be quantised
  IntegerOperand data = {};      ///< the other factor of a product of integers
  unsigned traits = 0;           ///< of Trait
  int draws_if = -1;             ///< operand: if it is true, random numbers are drawn; -1: none
  int chosen = -1;  ///< result: places that were chosen along `axis` of the first operand; -1: none
  int places = -1;  ///< operand: places along `axis` of the first or, if it is that, of the result
  int type_from = -1;           ///< operand that is only read for its type; -1: none
  std::string_view scale = {};  ///< attribute with a factor that encodes the length of an axis
  ResultType result = ResultType::kOfFirst;
  InferFn infer = nullptr;    ///< by default that of the notation
  FactorFn factor = nullptr;  ///< by default that of the notation
  /// In addition to the attributes that the notation binds.
  PatchFn patch = nullptr;
  ZeroBehaviour (*zero_of)(const NodeView&) = nullptr;  ///< if it depends on operands: Clip
  /// Returns the notation's line if an attribute holds the notation: Einsum.
  notation::Line (*line_of)(const NodeView&) = nullptr;
  std::string_view domain = {};

  /// Does the analysis follow axes through it? Otherwise it pins its operands.
  bool is_followed() const { return !line.empty() || factor != nullptr; }
  bool has(Trait trait) const { return (traits & trait) != 0; }
};

/// All built-in operators, sorted by domain and name.
std::span<const OpSchema> operator_table();

/// The domain in whose rows the operators of another domain are found, of which it is an earlier
/// or another name; else the domain itself.
std::string_view present_domain(std::string_view domain);

/// Null for an unknown operator.
const OpSchema* find_schema(std::string_view domain, std::string_view op);

/// The row of an operator that the analysis follows; null for others.
const OpSchema* followed_schema(const Node& node);

/// The row of the node's operator; an empty row if it is unknown.
const OpSchema& schema_of(const Node& node);

inline bool has_trait(const Node& node, Trait trait) { return schema_of(node).has(trait); }

/// Does the node draw random numbers, others in each run?
bool draws(const Graph& graph, const Node& node);

/// Does the node read the elements of the operand, not only its type or its shape?
bool reads_elements(const Node& node, int input);

/// The compiled notation of `schema`; null if it has none.
const notation::Line* compiled(const OpSchema& schema);

ZeroBehaviour zero_behaviour(const NodeView& view);

/// The element type of a node's result, as far as the operator alone determines it. Casts are not
/// covered.
/// @source ONNX operators, opset 17
DType result_type(const Graph& graph, const Node& node, size_t output);

/// Registers a custom operator by a row like those of the table. It applies to every network that
/// is analysed afterwards. Built-in operators cannot be redefined.
///
///     add_operator({.op = "FusedGelu", .line = "x[..s] -> y[..s]", .domain = "com.example"});
///
/// The strings are copied. Must not be called while another thread analyses a network.
/// @throws ConfigError if the line is not well formed, or the operator is known
void add_operator(const OpSchema& schema);

}  // namespace parsimony
