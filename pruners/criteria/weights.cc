// Criteria that read weights alone, or nothing: norms of the slices of a channel and distances of
// filters, gains of normalisations, random numbers.
#include "parsimony/graph/weights.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "parsimony/pruners/criteria/criteria.h"
#include "parsimony/pruners/members.h"

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

// score[c] = mean of |γ| over the BatchNormalizations of the group
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

// score[c] = Σ_k ‖F_c - F_k‖₂
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

namespace {

/// splitmix64. @source Steele et al., Fast Splittable Pseudorandom Number Generators, OOPSLA 2014
uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

uint64_t key_of(uint64_t seed, std::string_view id) {
  uint64_t key = mix(seed);
  for (char c : id) key = mix(key ^ static_cast<unsigned char>(c));
  return key;
}

}  // namespace

// score[c] uniform in [0, 1); a counter-based generator, so that no draw depends on another.
Scores random(const Graph& /*graph*/, const Group& group, const CriterionOptions& options) {
  const uint64_t key = key_of(options.seed, group.id);
  Scores scores(group.size);
  for (size_t c = 0; c < scores.size(); ++c) {
    scores[c] = static_cast<double>(mix(key ^ mix(c)) >> 11) * 0x1p-53;
  }
  return scores;
}

}  // namespace parsimony::criteria
