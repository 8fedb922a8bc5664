// Checks that a plan describes the tensors whose values change.
#pragma once

#include "parsimony/speedup/plan.h"

namespace parsimony {

/// The first update for which the plan has neither `zeros` nor new values; null if there is none.
const TensorUpdate* incomplete_update(const Plan& plan);

}  // namespace parsimony
