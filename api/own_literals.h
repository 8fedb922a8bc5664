// A graph that outlives edits of its model.
#pragma once

#include <cstddef>
#include <deque>
#include <vector>

#include "parsimony/graph/graph.h"

namespace parsimony {

using LiteralMemory = std::deque<std::vector<std::byte>>;

/// Copies the constants whose elements shape inference reads into `memory`, which must outlive the
/// graph.
void own_literals(Graph& graph, LiteralMemory& memory);

}  // namespace parsimony
