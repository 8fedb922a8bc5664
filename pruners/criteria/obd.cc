// score[c] = Σ ½·h·w², h the mean over samples of g²
#include "parsimony/pruners/criteria/criteria.h"
#include "parsimony/pruners/criteria/measured.h"

namespace parsimony::criteria {

Scores obd(const Graph& /*graph*/, const Group& group, const CriterionOptions& options) {
  return measured(options, Measure::kHessian, group, "obd");
}

}  // namespace parsimony::criteria
