// score[c] = √(Σ w²)
#include <cmath>

#include "parsimony/pruners/criteria/criteria.h"
#include "parsimony/pruners/norm.h"

namespace parsimony::criteria {

Scores l2(const Graph& graph, const Group& group, const CriterionOptions& /*options*/) {
  Scores scores = sum_members(graph, group, Power::kTwo);
  for (double& score : scores) score = std::sqrt(score);
  return scores;
}

}  // namespace parsimony::criteria
