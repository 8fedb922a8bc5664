// score[c] = #{k: mean_k < mean_c} / channels
#include <algorithm>

#include "parsimony/pruners/criteria/criteria.h"
#include "parsimony/pruners/criteria/measured.h"

namespace parsimony::criteria {

Scores mean_activation_rank(const Graph& /*graph*/, const Group& group,
                            const CriterionOptions& options) {
  const Scores means = measured(options, Measure::kMeanActivation, group, "mean_activation_rank");
  Scores sorted = means;
  std::sort(sorted.begin(), sorted.end());
  Scores scores;
  for (const double mean : means) {
    const auto below = std::lower_bound(sorted.begin(), sorted.end(), mean) - sorted.begin();
    scores.push_back(static_cast<double>(below) / static_cast<double>(means.size()));
  }
  return scores;
}

}  // namespace parsimony::criteria
