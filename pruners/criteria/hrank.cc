// score[c] = mean rank of the feature map
#include "parsimony/pruners/criteria/criteria.h"
#include "parsimony/pruners/criteria/measured.h"

namespace parsimony::criteria {

Scores hrank(const Graph& /*graph*/, const Group& group, const CriterionOptions& options) {
  return measured(options, Measure::kRank, group, "hrank");
}

}  // namespace parsimony::criteria
