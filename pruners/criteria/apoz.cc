// score[c] = 1 - share of activations that are zero
#include "parsimony/pruners/criteria/criteria.h"
#include "parsimony/pruners/criteria/measured.h"

namespace parsimony::criteria {

Scores apoz(const Graph& /*graph*/, const Group& group, const CriterionOptions& options) {
  Scores scores = measured(options, Measure::kZeroShare, group, "apoz");
  for (double& score : scores) score = 1 - score;
  return scores;
}

}  // namespace parsimony::criteria
