// score[c] = mean over batches of |Σ g·w|
#include "parsimony/pruners/criteria/criteria.h"
#include "parsimony/pruners/criteria/measured.h"

namespace parsimony::criteria {

Scores taylor(const Graph& /*graph*/, const Group& group, const CriterionOptions& options) {
  return measured(options, Measure::kTaylor, group, "taylor");
}

}  // namespace parsimony::criteria
