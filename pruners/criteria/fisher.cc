// score[c] = mean over samples of (∂L/∂m_c)², m a mask on the channel
#include "parsimony/pruners/criteria/criteria.h"
#include "parsimony/pruners/criteria/measured.h"

namespace parsimony::criteria {

Scores fisher(const Graph& /*graph*/, const Group& group, const CriterionOptions& options) {
  return measured(options, Measure::kFisher, group, "fisher");
}

}  // namespace parsimony::criteria
