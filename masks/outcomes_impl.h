// Softmaxes whose results are weighed by position. Private to masks/.
#pragma once

#include "parsimony/masks/dim_classes_impl.h"

namespace parsimony {

/// The node that reads a weight of the group together with what the softmax gives, unchanged but
/// for its layout: the expectation over bins in a detector's box head. kNone if there is none.
/// Products with activations, as in attention, are none.
NodeId reader_of_outcomes(const Graph& graph, const DimClasses& dim_classes, const Group& group,
                          NodeId softmax);

}  // namespace parsimony
