// The one-line description of an operator, for instance
//
//   x[n (g i) ..s] w[(g o) i ..k] b[(g o)]? -> y[n (g o) ..t] ; g = attr group 1 ; macs w y
//
// An operand lists its dimensions. A dimension is a label, a product of labels in parentheses
// (outermost first), a number, or `..s`: any number of dimensions, right-aligned and broadcast as
// in numpy. A number is a label of that size which may not shrink. A label that appears in one
// operand only may not shrink either: data flows along it (kernels, strides).
//
//   b[c]?     the operand may be absent            a*[..x]   this and all further operands
//   b~[m n]   right-aligned and broadcast          b![c]     a divisor: sliced, never zeroed
//
// Clauses follow, separated by ';':
//   g = attr NAME DEFAULT     the size of g is an attribute, and follows it when g shrinks
//   |..a| = attr NAME DEFAULT the number of dimensions before the attribute's axis
//   pin LABELS · mixes LABELS
//   macs x w + t n r          a sum of products of sizes: of the labels of the named operands
//                            (once per occurrence) and of further labels
//   swap OPERAND NAME         the operand's two dimensions are swapped if the attribute is 1
//   since N · until N         opsets for which this alternative holds
//   if NAME = TEXT            the alternative holds where the attribute has this value, or is a
//                             list of nothing else; with ?= also where it is absent
//   least LABEL NUMBER        at least as many of the label remain as an attribute says that is
//                             bound to NUMBER
//   role ROLE LABELS          the role of the labels of these names for granularity policies, in
//   all
//                             alternatives; names of labels have no meaning by themselves:
//     head        heads of attention            head_dim    what a score is summed over, of a head
//     value_dim   elements of a head's values   rotary      pairs of a head that are rotated
//     group       groups of a convolution       expert      what is chosen among by scores; it
//                                                           stays under all other policies
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace parsimony::notation {

class SyntaxError : public std::invalid_argument {
 public:
  SyntaxError(std::string_view line, size_t at, const std::string& fault)
      : std::invalid_argument("operator line \"" + std::string(line) + "\", column " +
                              std::to_string(at + 1) + ": " + fault),
        at_(at),
        fault_(fault) {}

  size_t at() const { return at_; }  ///< of the line's characters
  const std::string& fault() const { return fault_; }

 private:
  size_t at_;
  std::string fault_;
};

/// The role of an axis for granularity policies.
enum class LabelRole : uint8_t { kPlain, kHead, kHeadDim, kValueDim, kRotary, kGroup, kExpert };

struct Dim {
  bool ellipsis = false;            ///< `labels` holds the name of the ellipsis
  std::vector<std::string> labels;  ///< a digit string is a fixed size
};

struct Operand {
  std::string name;
  std::vector<Dim> dims;
  bool optional = false;
  bool variadic = false;
  bool broadcast = false;
  bool divisor = false;
};

struct Binding {
  std::string label;  ///< or the ellipsis whose number of dimensions is bound
  bool counts_dims = false;
  std::string attribute;
  long fallback = 0;
};

/// At least as many of `label` remain as the attribute bound to `number` says.
struct Least {
  std::string label;
  std::string number;
};

struct Swap {
  std::string operand;
  std::string attribute;
};

struct Condition {
  std::string attribute;
  std::string value;
  bool or_absent = false;
};

struct Alternative {
  std::vector<Operand> inputs;
  std::vector<Operand> outputs;
  std::vector<Binding> bindings;
  std::vector<Swap> swaps;
  std::vector<Condition> conditions;
  std::vector<std::string> pins;
  std::vector<std::string> mixes;
  std::vector<Least> least;
  std::vector<std::vector<std::string>> macs;  ///< products of operands and labels
  int since = 0;
  int until = 1 << 30;
};

/// The alternatives of one operator; the first whose ranks and conditions match is used.
struct Line {
  std::vector<Alternative> alternatives;
  std::vector<std::pair<std::string, LabelRole>> roles;

  LabelRole role_of(std::string_view label) const;
};

/// @throws std::invalid_argument, with the column, if the text is not well formed.
Line parse(std::string_view text);

}  // namespace parsimony::notation
