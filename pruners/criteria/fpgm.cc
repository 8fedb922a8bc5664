// score[c] = Σ_k ‖F_c - F_k‖₂
#include "parsimony/pruners/criteria/criteria.h"
#include "parsimony/pruners/members.h"

namespace parsimony::criteria {

Scores fpgm(const Graph& graph, const Group& group, const CriterionOptions& /*options*/) {
  const Eigen::MatrixXd filters = slices_of(graph, group, Which::kProducing);
  const Eigen::MatrixXd products = filters * filters.transpose();
  const Eigen::VectorXd squares = products.diagonal();
  Scores scores(group.size);
  for (Eigen::Index c = 0; c < products.rows(); ++c) {
    // ‖a - b‖² = ‖a‖² + ‖b‖² - 2 a·b, which rounding can take below zero.
    const Eigen::ArrayXd distances =
        (squares.array() + squares(c) - 2 * products.col(c).array()).max(0.0).sqrt();
    scores[c] = distances.sum();
  }
  return scores;
}

}  // namespace parsimony::criteria
