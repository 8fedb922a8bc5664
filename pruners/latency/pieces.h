// A network in pieces whose times add up to its own: a layer with what follows it.
#pragma once

#include <string>
#include <vector>

#include "parsimony/graph/operators/factor.h"
#include "parsimony/masks/coupling.h"

namespace parsimony {

/// Nodes that are measured together, and what their time depends on.
struct Piece {
  std::vector<NodeId> nodes;  ///< in graph order
  /// The lines (see Coupling) that can shrink there, at most two; of a piece of one node with more
  /// of them only the longest two, of two that share a group only the longer one.
  std::vector<LineId> lines;
  /// Equal for pieces that take the same time at the same widths: operators, attributes, shapes.
  std::string key;
  std::string what;  ///< "Conv 16x16x3x3, Add, Relu", for people
};

/// Every node that computes on data stands in one piece. A piece begins with a layer, or where a
/// third axis would come in; normalisation, activation, addition and pooling belong to the piece of
/// the operand that was computed last. Shape arithmetic and what is computed of weights alone cost
/// nothing; operators with bodies are left out.
std::vector<Piece> pieces_of(const Graph& graph, const Facts& facts, const Coupling& coupling);

}  // namespace parsimony
