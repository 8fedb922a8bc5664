// How one node sees its operands: dimensions as products of letters, and maps between indices.
#pragma once

#include <absl/container/inlined_vector.h>

#include <cstdint>
#include <string>
#include <vector>

#include "parsimony/graph/graph.h"
#include "parsimony/graph/operators/notation.h"

namespace parsimony {

/// One per dimension of a tensor, or per letter of a dimension: in place, for a network has many of
/// them, and few are longer.
template <typename T>
using Few = absl::InlinedVector<T, 4>;
using FewInts = Few<int>;

/// A byte per dimension of a tensor, likewise.
using FewFlags = absl::InlinedVector<uint8_t, 16>;

/// One axis local to a node. Nothing outside the node knows it.
struct Letter {
  std::string name;
  std::string pin;  ///< reason of the rule why it may not shrink; empty if there is none
  int64_t size = 1;
  notation::LetterRole role = notation::LetterRole::kPlain;
  bool mixes = false;       ///< what remains depends on what was removed: a softmax, a mean
  bool contracted = false;  ///< summed over: stands in no output
  bool window = false;      ///< may not shrink: it stands in one operand only, a kernel or space

  bool pinned() const { return window || !pin.empty(); }
  /// Why it may not shrink.
  std::string why() const { return window ? "data flows along it (axis '" + name + "')" : pin; }
};

/// Dimension `dim` of `value` is the product of `letters`, outermost first.
struct Term {
  ValueId value = kNone;
  int dim = 0;
  FewInts letters;
};

/// Indices [a_begin, a_begin + count) of one dimension are those from b_begin on of another.
struct Run {
  int64_t a_begin = 0;
  int64_t b_begin = 0;
  int64_t count = 0;
};

/// Where a dimension is not a product but a sum of pieces: Concat, Split, Slice, Pad, Gather.
/// `a` is the node's input, `b` its output.
struct Map {
  ValueId a = kNone;
  int a_dim = 0;
  ValueId b = kNone;
  int b_dim = 0;
  std::vector<Run> runs;
};

/// Dimension `dim` of `value` may not shrink within [begin, end).
struct Pin {
  ValueId value = kNone;
  int dim = 0;
  int64_t begin = 0;
  int64_t end = 0;
  std::string reason;
};

struct Factors {
  std::vector<Letter> letters;
  std::vector<Term> terms;
  std::vector<Map> maps;
  std::vector<Pin> pins;
  std::vector<ValueId> divisors;  ///< operands that must not become zero
};

}  // namespace parsimony
