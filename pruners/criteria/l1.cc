// score[c] = Σ |w|
#include "parsimony/pruners/criteria/criteria.h"
#include "parsimony/pruners/norm.h"

namespace parsimony::criteria {

Scores l1(const Graph& graph, const Group& group, const CriterionOptions& /*options*/) {
  return sum_members(graph, group, Power::kOne);
}

}  // namespace parsimony::criteria
