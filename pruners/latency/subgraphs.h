// A network split into subgraphs whose times add up: a layer with what follows it.
#pragma once

#include <string>
#include <vector>

#include "parsimony/graph/operators/factor.h"
#include "parsimony/masks/coupling.h"

namespace parsimony {

/// Nodes that are measured together, and what their time depends on.
struct Subgraph {
  std::vector<NodeId> nodes;  ///< in graph order
  /// The dim classes (see Coupling) that can shrink, at most two; of a subgraph of one node with
  /// more of them only the two longest, of two that share a group only the longer one.
  std::vector<DimClassId> dim_classes;
  /// Equal for subgraphs that take the same time at the same widths: operators, attributes, shapes.
  std::string key;
  std::string what;  ///< for display: "Conv 16x16x3x3, Add, Relu"
};

/// Every node that computes on data belongs to one subgraph. A subgraph begins with a layer, or
/// where a third axis would be added; normalisation, activation, addition and pooling belong to the
/// subgraph of the operand that is computed last. Shape arithmetic and computation on weights alone
/// cost nothing; operators with bodies are skipped.
std::vector<Subgraph> subgraphs_of(const Graph& graph, const Facts& facts,
                                   const Coupling& coupling);

}  // namespace parsimony
