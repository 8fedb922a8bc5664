// What a plan must say of the tensors whose values change.
#pragma once

#include "parsimony/speedup/plan.h"

namespace parsimony {

/// The first fold of which neither `zeros` nor new values say what the tensor becomes; null if
/// there is none.
const PlanFold* unexplained_fold(const Plan& plan);

}  // namespace parsimony
