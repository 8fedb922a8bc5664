// Fits an operator's line to the operands of one node: which alternative holds, how long its
// ellipses are and what sizes its letters have.
#pragma once

#include <absl/container/inlined_vector.h>

#include <optional>
#include <string>
#include <vector>

#include "parsimony/graph/factors.h"
#include "parsimony/graph/operators/notation.h"
#include "parsimony/graph/operators/schema.h"

namespace parsimony {

/// A dimension of an operand as letters of the match; empty where a broadcast 1 stands.
struct MatchedDim {
  FewInts letters;
};

struct MatchedOperand {
  ValueId value = kNone;
  const notation::Operand* pattern = nullptr;
  bool output = false;
  absl::InlinedVector<MatchedDim, 5> dims;
};

struct MatchedLetter {
  std::string name;
  int64_t size = 0;  ///< 0: no operand with a known shape tells
  bool ellipsis = false;
  bool fixed = false;  ///< a number in the line
};

struct Match {
  const notation::Alternative* alternative = nullptr;
  std::vector<MatchedLetter> letters;
  std::vector<MatchedOperand> operands;  ///< present ones, inputs first
};

/// Where a letter stands in an operand: of dimension `dim`, its coordinates are those of
/// (index / stride) % size.
struct LetterPlace {
  ValueId value = kNone;
  int dim = 0;
  int64_t stride = 1;
  int64_t size = 1;
};

/// 1 where nothing tells.
int64_t size_of(const Match& match, int letter);

/// The first place of a letter, by its number; empty if it stands nowhere.
std::optional<LetterPlace> locate(const Match& match, int letter);

/// Does the alternative hold for a node with such attributes, of such an opset?
bool holds(const notation::Alternative& alternative, const Node& node);

/// The first alternative that fits; empty if none does or a needed shape is unknown.
/// @throws ModelError if the sizes of the operands contradict each other
std::optional<Match> match(const notation::Line& line, const NodeView& view);

/// Output shapes from the letters, as far as the inputs determine them.
Shapes infer_line(const notation::Line& line, const NodeView& view);

/// Letters and terms of the line; pins what it does not name.
Factors factor_line(const notation::Line& line, const NodeView& view);

}  // namespace parsimony
