// Matches an operator's notation against the operands of one node: which alternative applies, how
// long its ellipses are and which sizes its labels have.
#pragma once

#include <absl/container/inlined_vector.h>

#include <optional>
#include <string>
#include <vector>

#include "parsimony/graph/operators/factor.h"
#include "parsimony/graph/operators/node_view.h"
#include "parsimony/graph/operators/notation.h"
#include "parsimony/graph/operators/schema.h"

namespace parsimony {

/// A dimension of an operand as labels of the match; empty for a broadcast 1.
struct MatchedDim {
  FewInts labels;
};

struct MatchedOperand {
  ValueId value = kNone;
  const notation::Operand* pattern = nullptr;
  bool output = false;
  absl::InlinedVector<MatchedDim, 5> dims;
};

/// The size of a label that no operand with a known shape determines.
inline constexpr int64_t kNotDetermined = -1;

struct MatchedLabel {
  std::string name;
  int64_t size = kNotDetermined;
  bool ellipsis = false;
  bool fixed = false;  ///< a number in the notation
};

struct Match {
  const notation::Alternative* alternative = nullptr;
  std::vector<MatchedLabel> labels;
  std::vector<MatchedOperand> operands;  ///< present ones, inputs first
};

/// The position of a label in an operand: its coordinate is (index / stride) % size of dimension
/// `dim`.
struct LabelPosition {
  ValueId value = kNone;
  int dim = 0;
  int64_t stride = 1;
  int64_t size = 1;
};

/// 1 if unknown.
int64_t size_of(const Match& match, int label);

/// The first position of a label, by its number; empty if it does not appear.
std::optional<LabelPosition> locate(const Match& match, int label);

/// Does the alternative hold for a node with these attributes and opset?
bool holds(const notation::Alternative& alternative, const Node& node);

/// The first alternative that fits; empty if none does or a needed shape is unknown.
/// @throws ModelError if the sizes of the operands contradict each other
std::optional<Match> match(const notation::Line& line, const NodeView& view);

/// Output shapes from the labels, as far as the inputs determine them.
Shapes infer_line(const notation::Line& line, const NodeView& view);

/// Labels and terms of the notation; pins the dimensions that it does not name.
Factors factor_line(const notation::Line& line, const NodeView& view);

}  // namespace parsimony
