// score[c] = ‖F_c‖² / Σ ‖F_k‖² over the k with ‖F_k‖ ≥ ‖F_c‖
#include <algorithm>
#include <numeric>

#include "parsimony/pruners/criteria/criteria.h"
#include "parsimony/pruners/norm.h"

namespace parsimony::criteria {

Scores lamp(const Graph& graph, const Group& group, const CriterionOptions& /*options*/) {
  const Scores squares = sum_members(graph, group, Power::kTwo);
  std::vector<size_t> order(squares.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return squares[a] > squares[b]; });
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

}  // namespace parsimony::criteria
