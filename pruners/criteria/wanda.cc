// score[c] = Σ |w| · ‖x_c‖, w the slices that consume the channel
#include "parsimony/pruners/criteria/criteria.h"
#include "parsimony/pruners/criteria/measured.h"
#include "parsimony/pruners/norm.h"

namespace parsimony::criteria {

Scores wanda(const Graph& graph, const Group& group, const CriterionOptions& options) {
  Scores scores = measured(options, Measure::kActivationNorm, group, "wanda");
  const bool consumed = !members_of(graph, group, Which::kConsuming).empty();
  const Scores weights =
      sum_members(graph, group, Power::kOne, consumed ? Which::kConsuming : Which::kProducing);
  for (size_t c = 0; c < scores.size(); ++c) scores[c] *= weights[c];
  return scores;
}

}  // namespace parsimony::criteria
