// score[c] = mean of the activations
#include "parsimony/pruners/criteria/criteria.h"
#include "parsimony/pruners/criteria/measured.h"

namespace parsimony::criteria {

Scores mean_activation(const Graph& /*graph*/, const Group& group,
                       const CriterionOptions& options) {
  return measured(options, Measure::kMeanActivation, group, "mean_activation");
}

}  // namespace parsimony::criteria
