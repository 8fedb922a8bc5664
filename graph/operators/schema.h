// All that is known of an operator, in one row: its line of notation, what zero becomes, where its
// weights are, what it is to others, and functions for what a line cannot say. Rooms that treat
// some operators otherwise than others ask the row and never compare names.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "parsimony/graph/factors.h"
#include "parsimony/graph/operators/node_view.h"
#include "parsimony/graph/operators/notation.h"
#include "parsimony/graph/operators/patch_view.h"

namespace parsimony {

/// Shapes of the outputs, as far as known.
using Shapes = std::vector<std::optional<Shape>>;
using InferFn = Shapes (*)(const NodeView&);
using FactorFn = Factors (*)(const NodeView&);
using PatchFn = void (*)(PatchView&);

/// What a removed slice of the inputs becomes in the output; see Transfer in zero.h.
enum class ZeroBehaviour : uint8_t {
  kZero,        ///< zero if every operand that has the axis is zero there: ReLU, Add
  kProduct,     ///< zero if any operand is zero there, and all that is added: Mul, Conv
  kShifted,     ///< a product behind which something moves zero: RNN with Sigmoid
  kZeros,       ///< zero whatever the operands are: ConstantOfShape
  kQuotient,    ///< zero if the numerator is; a removed divisor is not computable: Div
  kFirst,       ///< zero if the first operand is, whatever the others are: PRelu
  kNormalised,  ///< gain · (x - mean) / deviation + shift: BatchNormalization
  kConstant,    ///< some other constant: Sigmoid(0) = 0.5
  kUndefined,   ///< infinite or not a number: Log(0)
};

/// A letter that is summed over is gone as soon as one operand is zero there.
constexpr bool is_product(ZeroBehaviour zero) {
  return zero == ZeroBehaviour::kProduct || zero == ZeroBehaviour::kShifted;
}

/// What an operator is to those who treat it otherwise than others. A bit each.
enum Trait : unsigned {
  kAdds = 1U << 0,            ///< the sum of two operands
  kMultiplies = 1U << 1,      ///< the product of two operands, element by element
  kDivides = 1U << 2,         ///< the quotient of two operands
  kRectifies = 1U << 3,       ///< max(x, 0)
  kCopies = 1U << 4,          ///< the same elements in the same order, be it in another type
  kPermutes = 1U << 5,        ///< the same elements, axes in another order
  kTakesApart = 1U << 6,      ///< pieces of the first operand, which the others only steer
  kHomogeneous = 1U << 7,     ///< f(s·x) = s·f(x), were it not for what else it reads
  kSums = 1U << 8,            ///< sums along an axis, such that a factor of what it reads passes
  kReduces = 1U << 9,         ///< one number for all elements along some axes
  kAttends = 1U << 10,        ///< attention, whose scale is 1/sqrt(head_dim) unless it is given
  kPairs = 1U << 11,          ///< products of two activations are attention spelled out
  kProbabilities = 1U << 12,  ///< the last layer of a classifier
  kReadsSizes = 1U << 13,     ///< looks at shapes, at no element
  kFills = 1U << 14,          ///< makes a tensor of the shape that it reads
  kRescales = 1U << 15,       ///< operands behind the first are sizes and scales
  kChooses = 1U << 16,        ///< its answer jumps where what it reads hardly moves
  kPads = 1U << 17,           ///< fills what no element of the operand comes to
  kReadsIntegers = 1U << 18,  ///< integers of any width, of which its weights are made
};

/// How a layer applies its weights.
enum class LinearKind : uint8_t {
  kNotLinear,
  kMatrixProduct,
  kConvolution,  ///< w [out, in / groups, ..kernel]
  kTransposedConvolution,
  kContraction,  ///< whatever the equation says: Einsum
  kLookup,       ///< rows of a table
  kRecurrence,   ///< w [.., gates · out, in], one matrix for the input, one for the state
  kAttention,    ///< the projection in front of an attention
};

/// Where the weights of a layer are. What their axes are follows from the line: `linear_form`.
struct Linear {
  LinearKind kind = LinearKind::kNotLinear;
  unsigned weights = 0;         ///< operands that may be the weight, a bit each
  int bias = -1;                ///< operand that is added; -1: the operator has none
  bool plain = false;           ///< floating-point numbers, and nothing behind the sum
  std::string_view layer = {};  ///< what configurations call it: "Conv", "Gemm"
};

/// Operands of a normalisation that are weights, -1 where it has none.
struct Norm {
  int gain = -1;
  int shift = -1;
  int statistics = -1;  ///< mean and variance, kept from training: this operand and the next
};

/// An operand of integers, w[i] for (w[i] - zero_point) · scale; without scale that comes later.
struct IntegerOperand {
  int operand = -1;
  int scale = -1;
  int zero_point = -1;
};

enum class ResultType : uint8_t {
  kOfFirst,   ///< of the first operand that there is
  kOfSecond,  ///< the first is a condition
  kBool,
  kInt64,
  kSecondIsInt64,  ///< the first result is of the operand's type, the second says where it was
};

struct OpSchema {
  std::string_view op = {};
  std::string_view line = {};  ///< notation; several alternatives separated by '|'
  ZeroBehaviour zero = ZeroBehaviour::kZero;
  Linear linear = {};
  Norm norm = {};
  IntegerOperand integers = {};  ///< where a weight may be one
  IntegerOperand data = {};      ///< the other factor of a product of integers
  unsigned traits = 0;           ///< of Trait
  std::string_view scale = {};   ///< attribute: a factor made of the length of an axis
  ResultType result = ResultType::kOfFirst;
  InferFn infer = nullptr;                               ///< by default the line's
  FactorFn factor = nullptr;                             ///< by default the line's
  PatchFn patch = nullptr;                               ///< beside the attributes the line binds
  ZeroBehaviour (*zero_of)(const NodeView&) = nullptr;   ///< where operands decide: Clip
  notation::Line (*line_of)(const NodeView&) = nullptr;  ///< where an attribute is the line: Einsum
  std::string_view domain = {};

  /// Does the analysis follow axes through it? It pins what it touches otherwise.
  bool is_followed() const { return !line.empty() || factor != nullptr; }
  bool has(Trait trait) const { return (traits & trait) != 0; }
};

/// Every operator known; sorted by domain and name.
std::span<const OpSchema> operator_table();

/// Null for an unknown operator.
const OpSchema* find_schema(std::string_view domain, std::string_view op);

/// The row of an operator that the analysis follows; null for others.
const OpSchema* followed_schema(const Node& node);

/// The row of the node's operator; one that says nothing where it is unknown.
const OpSchema& schema_of(const Node& node);

inline bool has_trait(const Node& node, Trait trait) { return schema_of(node).has(trait); }

/// The compiled line of `schema`; null if it has none.
const notation::Line* compiled(const OpSchema& schema);

ZeroBehaviour zero_behaviour(const NodeView& view);

/// The element type of what a node computes, as its operator alone tells it. Casts are not known.
/// @source ONNX operators, opset 17
DType result_type(const Graph& graph, const Node& node, size_t output);

/// Teaches the analysis an operator that only a user's networks have, by a row as the table has
/// them. It counts in every network that is read afterwards. An operator that the table has already
/// cannot be taught otherwise.
///
///     add_operator({.op = "FusedGelu", .line = "x[..s] -> y[..s]", .domain = "com.example"});
///
/// The texts are copied. Not to be called while another thread analyses a network.
/// @throws ConfigError if the line is not well formed, or the operator is known
void add_operator(const OpSchema& schema);

}  // namespace parsimony
