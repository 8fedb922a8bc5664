// Numbers of words: integers that a network is given, and that index the rows of tables.
#pragma once

#include <cstdint>
#include <vector>

#include "parsimony/graph/graph.h"
#include "parsimony/graph/interface.h"

namespace parsimony {

/// The words of a language model: inputs [..] of integers below `size` that are read by lookups in
/// tables [size, d] alone, and what has one row or column for each word.
struct Words {
  int64_t size = 0;             ///< 0: the network has none
  std::vector<ValueId> inputs;  ///< of the network
  std::vector<ValueDim> dims;   ///< rows of tables; the last axes of outputs that are as long
};

/// Finds the words: of all inputs that index tables, those of the longest ones.
/// @throws UnsupportedError naming the node that reads their numbers for another reason
Words find_words(const Graph& graph, const Facts& facts);

}  // namespace parsimony
