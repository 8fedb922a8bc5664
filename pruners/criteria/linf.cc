// score[c] = max |w|
#include <algorithm>

#include "parsimony/pruners/criteria/criteria.h"
#include "parsimony/pruners/members.h"

namespace parsimony::criteria {

Scores linf(const Graph& graph, const Group& group, const CriterionOptions& /*options*/) {
  Scores scores(group.size);
  for (const Member* member : members_of(graph, group, Which::kProducing)) {
    const Eigen::MatrixXd slices = slices_of(graph, *member);
    for (Eigen::Index c = 0; c < slices.rows() && slices.cols() > 0; ++c) {
      double& score = scores[c];
      score = std::max(score, slices.row(c).cwiseAbs().maxCoeff());
    }
  }
  return scores;
}

}  // namespace parsimony::criteria
