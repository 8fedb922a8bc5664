// score[c] = Σ over the steps of a training of -g·w
#include "parsimony/pruners/criteria/criteria.h"
#include "parsimony/pruners/errors.h"
#include "parsimony/pruners/statistics.h"

namespace parsimony::criteria {

Scores movement(const Graph& /*graph*/, const Group& group, const CriterionOptions& options) {
  const Statistics* statistics = options.statistics;
  if (statistics == nullptr || !statistics->channels.contains(Measure::kMovement)) {
    throw errors::needs_training("movement");
  }
  const auto found = statistics->of(Measure::kMovement, group);
  return {found.begin(), found.end()};
}

}  // namespace parsimony::criteria
