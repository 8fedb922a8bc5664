// score[c] = mean of |γ| over the BatchNormalizations of the group
#include "parsimony/graph/operators/operands.h"
#include "parsimony/pruners/criteria/criteria.h"
#include "parsimony/pruners/members.h"

namespace parsimony::criteria {

Scores bn_scale(const Graph& graph, const Group& group, const CriterionOptions& /*options*/) {
  Eigen::VectorXd sum = Eigen::VectorXd::Zero(group.size);
  int norms = 0;
  for (const Member* member : members_of(graph, group, Which::kParameters)) {
    if (member->node == kNone) continue;
    if (!is_gain_of_statistics(graph.node(member->node), member->value)) continue;
    sum += slices_of(graph, *member).cwiseAbs().rowwise().sum();
    ++norms;
  }
  if (norms == 0) return {};
  sum /= norms;
  return {sum.begin(), sum.end()};
}

}  // namespace parsimony::criteria
