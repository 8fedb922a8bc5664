// What happens to removed channels downstream: the roles of weights, where a removed channel is
// zero, and where it matters. Private to masks/.
#pragma once

#include <vector>

#include "parsimony/masks/axes_impl.h"

namespace parsimony {

/// A node at which something happens to the channels of a dim class.
struct Occurrence {
  DimClassId dim_class = kNone;  ///< either all of a dim class
  LabelId label = kNone;         ///< or the coordinates of a label
  NodeId node = kNone;
};

struct Effects {
  IdVector<ValueId, FewFlags> roles;   ///< per dimension: bits of Role
  IdVector<ValueId, FewFlags> zero;    ///< per dimension
  std::vector<Occurrence> mixing;      ///< what remains depends on what was removed
  std::vector<Occurrence> unweighted;  ///< summed over without a weight
};

Effects trace_effects(const Graph& graph, const Facts& facts, const DimClasses& dim_classes,
                      const Axes& axes);

}  // namespace parsimony
