// score[c] = Σ w² over all members, by the mean over the channels
#include <numeric>

#include "parsimony/pruners/criteria/criteria.h"
#include "parsimony/pruners/norm.h"

namespace parsimony::criteria {

Scores group_norm(const Graph& graph, const Group& group, const CriterionOptions& /*options*/) {
  Scores scores = sum_members(graph, group, Power::kTwo, Which::kParameters);
  const double mean = std::accumulate(scores.begin(), scores.end(), 0.0) / group.size;
  for (double& score : scores) score = mean > 0 ? score / mean : 0;
  return scores;
}

}  // namespace parsimony::criteria
