// Norms of the slices of a channel.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "parsimony/pruners/criteria/criteria.h"
#include "parsimony/pruners/norm.h"

namespace parsimony::criteria {

Scores l1(const Graph& graph, const Group& group, const CriterionOptions& /*options*/) {
  return sum_members(graph, group, Power::kOne);
}

Scores l2(const Graph& graph, const Group& group, const CriterionOptions& /*options*/) {
  Scores scores = sum_members(graph, group, Power::kTwo);
  for (double& score : scores) score = std::sqrt(score);
  return scores;
}

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

Scores lamp(const Graph& graph, const Group& group, const CriterionOptions& /*options*/) {
  const Scores squares = sum_members(graph, group, Power::kTwo);
  std::vector<size_t> order(squares.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, [&](size_t a, size_t b) { return squares[a] > squares[b]; });
  Scores scores(squares.size());
  double sum = 0;
  for (size_t first = 0; first < order.size();) {
    size_t last = first;  // channels of one norm share a score
    for (; last < order.size() && squares[order[last]] == squares[order[first]]; ++last) {
      sum += squares[order[last]];
    }
    for (; first < last; ++first) {
      scores[order[first]] = sum > 0 ? squares[order[first]] / sum : 0;
    }
  }
  return scores;
}

Scores group_norm(const Graph& graph, const Group& group, const CriterionOptions& /*options*/) {
  Scores scores = sum_members(graph, group, Power::kTwo, Which::kParameters);
  const double mean = std::accumulate(scores.begin(), scores.end(), 0.0) / group.size;
  for (double& score : scores) score = mean > 0 ? score / mean : 0;
  return scores;
}

}  // namespace parsimony::criteria
