// score[c] = mean over batches of (Σ g·w)²
#include "parsimony/pruners/criteria/criteria.h"
#include "parsimony/pruners/criteria/measured.h"

namespace parsimony::criteria {

Scores taylor_squared(const Graph& /*graph*/, const Group& group, const CriterionOptions& options) {
  return measured(options, Measure::kTaylorSquared, group, "taylor_squared");
}

}  // namespace parsimony::criteria
