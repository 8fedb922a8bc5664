// Factors: how a node's operator relates the dimensions of its operands and results. Dimensions are
// products of labels; indices are related by maps.
#pragma once

#include <absl/container/inlined_vector.h>

#include <cstdint>
#include <string>
#include <vector>

#include "parsimony/graph/graph.h"
#include "parsimony/graph/operators/notation.h"

namespace parsimony {

/// One per label of a dimension.
using FewInts = Few<int>;

/// A byte per dimension of a tensor, likewise.
using FewFlags = absl::InlinedVector<uint8_t, 16>;

/// One axis of the node's iteration space, local to the node: a factor in shardy's terms, a
/// subscript label in einsum's.
struct Label {
  std::string name;
  std::string pin;  ///< why the rule does not let it shrink; empty if it may
  int64_t size = 1;
  notation::LabelRole role = notation::LabelRole::kPlain;
  int64_t least = 1;        ///< so many remain at least
  bool mixes = false;       ///< what remains depends on what was removed: a softmax, a mean
  bool contracted = false;  ///< summed over: appears in no output
  /// May not shrink: it appears in one operand only, such as a kernel or a spatial dimension.
  bool window = false;

  bool pinned() const { return window || !pin.empty(); }
  /// Why it may not shrink.
  std::string why() const { return window ? "data flows along it (axis '" + name + "')" : pin; }
};

/// Dimension `dim` of `value` is the product of `labels`, outermost first.
struct Term {
  ValueId value = kNone;
  int dim = 0;
  FewInts labels;
};

/// Indices [a_begin, a_begin + count) of one dimension are those from b_begin on of another.
struct Segment {
  int64_t a_begin = 0;
  int64_t b_begin = 0;
  int64_t count = 0;
};

/// For dimensions that are not products but concatenations of segments: Concat, Split, Slice, Pad,
/// Gather. `a` is the node's input, `b` its output.
struct Map {
  ValueId a = kNone;
  int a_dim = 0;
  ValueId b = kNone;
  int b_dim = 0;
  std::vector<Segment> segments;
};

/// Dimension `dim` of `value` may not shrink within [begin, end).
struct Pin {
  ValueId value = kNone;
  int dim = 0;
  int64_t begin = 0;
  int64_t end = 0;
  std::string reason;
  int64_t read = kNone;  ///< the only index that the node reads; kNone: several
};

struct Factors {
  std::vector<Label> labels;
  std::vector<Term> terms;
  std::vector<Map> maps;
  std::vector<Pin> pins;
  std::vector<ValueId> divisors;  ///< operands that must not become zero
};

/// Factors of any node. Unknown operators, and rules that fail, pin all dimensions of their
/// operands.
Factors factor(const NodeView& view);

/// Do axes go into the node's bodies and out of them? Else they end there.
bool joins_bodies(const Node& node);

/// Factors that pin all operands and results of the node.
Factors pin_operands(const NodeView& view, const std::string& reason);

}  // namespace parsimony
