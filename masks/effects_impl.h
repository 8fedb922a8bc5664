// What becomes of removed channels on their way: the roles of weights, where a removed channel is
// zero, and where that matters. Private to masks/.
#pragma once

#include <vector>

#include "parsimony/masks/axes_impl.h"

namespace parsimony {

/// Where something befalls the channels of a line at one node.
struct Event {
  LineId line = kNone;      ///< either a whole line
  LetterId letter = kNone;  ///< or the coordinates of a letter
  NodeId node = kNone;
};

struct Effects {
  IdVector<ValueId, FewFlags> roles;  ///< per dimension: bits of Role
  IdVector<ValueId, FewFlags> zero;   ///< per dimension
  std::vector<Event> mixing;          ///< what remains depends on what was removed
  std::vector<Event> unweighted;      ///< summed over without a weight
};

Effects trace_effects(const Graph& graph, const Facts& facts, const Lines& lines, const Axes& axes);

}  // namespace parsimony
