// The k smallest magnitudes of weights too large to sort: selection by a sample, one pass; where
// that misleads by histogram, three passes, or four where there are doubles.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "parsimony/graph/graph.h"

namespace parsimony {

/// Where the smallest elements end.
struct Cut {
  double magnitude = 0;  ///< every element below it is among the smallest
  int64_t equal = 0;     ///< and so are this many of those equal to it, in order
};

/// The cut below which `count` elements of the weights lie, ranked together. `count` is within
/// 1 and their number of elements.
/// @throws ModelError for a NaN, UnsupportedError for a type that has no magnitude
Cut find_cut(std::span<const Weight* const> weights, int64_t count);

/// How many of the `count` smallest elements lie in each weight; of equal ones the earlier weight's
/// come first. @throws as find_cut
std::vector<int64_t> count_smallest(std::span<const Weight* const> weights, int64_t count);

}  // namespace parsimony
