// A graph as text, for debugging and for tests.
#pragma once

#include <string>

#include "parsimony/graph/graph.h"
#include "parsimony/graph/operators/factor.h"

namespace parsimony {

/// One line per graph input, node and graph output, in topological order:
///
///   input x[1, 3, 8, 8] float32
///   Conv_3: y[1, 64, 8, 8] = Conv(x[1, 3, 8, 8], w{conv1.weight}[64, 3, 1, 1]) group=1
///   output y[1, 64, 8, 8] float32
///
/// Braces hold the weight that a value refers to, and are empty where the names agree: `w{}`.
/// Shapes come from `facts` if it knows them, else from the file; `?` is an unknown dimension,
/// `[?]` an unknown rank and `-` an absent operand. A small computed value follows its shape:
/// `s[2]<2, 64>`.
std::string dump(const Graph& graph, const Facts* facts = nullptr);

}  // namespace parsimony
