// What happens to removed channels downstream: the roles of weights, where a removed channel is
// zero, where it matters, and softmaxes whose results are weighed by position. Private to masks/.
#pragma once

#include <vector>

#include "parsimony/masks/dim_classes_impl.h"
#include "parsimony/masks/index_classes_impl.h"

namespace parsimony {

struct Effects {
  IdVector<ValueId, FewFlags> roles;   ///< per dimension: bits of Role
  IdVector<ValueId, FewFlags> zero;    ///< per dimension
  std::vector<Occurrence> mixing;      ///< what remains depends on what was removed
  std::vector<Occurrence> unweighted;  ///< summed over without a weight
};

Effects trace_effects(const Graph& graph, const Facts& facts, const DimClasses& dim_classes,
                      const Axes& axes);

/// The node that reads a weight of the group together with what the softmax gives, unchanged but
/// for its layout: the expectation over bins in a detector's box head. kNone if there is none.
/// Products with activations, as in attention, are none.
NodeId reader_of_outcomes(const Graph& graph, const DimClasses& dim_classes, const Group& group,
                          NodeId softmax);

}  // namespace parsimony
