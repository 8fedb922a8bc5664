// Criteria that read statistics of data that ran through the network.
#include <algorithm>

#include "parsimony/pruners/criteria/criteria.h"
#include "parsimony/pruners/errors.h"
#include "parsimony/pruners/members.h"
#include "parsimony/pruners/statistics.h"

namespace parsimony::criteria {
namespace {

/// One number per channel; empty if no data reached the group.
/// @throws ConfigError if there are no statistics
Scores measured(const CriterionOptions& options, Measure measure, const Group& group,
                std::string_view criterion) {
  if (options.statistics == nullptr) throw errors::needs_data(criterion);
  const auto found = options.statistics->of(measure, group);
  return {found.begin(), found.end()};
}

}  // namespace

Scores apoz(const Graph& /*graph*/, const Group& group, const CriterionOptions& options) {
  Scores scores = measured(options, Measure::kZeroShare, group, "apoz");
  for (double& score : scores) score = 1 - score;
  return scores;
}

Scores mean_activation(const Graph& /*graph*/, const Group& group,
                       const CriterionOptions& options) {
  return measured(options, Measure::kMeanActivation, group, "mean_activation");
}

Scores mean_activation_rank(const Graph& /*graph*/, const Group& group,
                            const CriterionOptions& options) {
  const Scores means = measured(options, Measure::kMeanActivation, group, "mean_activation_rank");
  Scores sorted = means;
  std::ranges::sort(sorted);
  Scores scores;
  for (const double mean : means) {
    const auto below = std::ranges::lower_bound(sorted, mean) - sorted.begin();
    scores.push_back(static_cast<double>(below) / static_cast<double>(means.size()));
  }
  return scores;
}

Scores wanda(const Graph& graph, const Group& group, const CriterionOptions& options) {
  Scores scores = measured(options, Measure::kActivationNorm, group, "wanda");
  const bool consumed = !members_of(graph, group, Which::kConsuming).empty();
  const Scores weights =
      sum_members(graph, group, Power::kOne, consumed ? Which::kConsuming : Which::kProducing);
  for (size_t c = 0; c < scores.size(); ++c) scores[c] *= weights[c];
  return scores;
}

Scores hrank(const Graph& /*graph*/, const Group& group, const CriterionOptions& options) {
  return measured(options, Measure::kRank, group, "hrank");
}

Scores reap(const Graph& graph, const Group& group, const CriterionOptions& options) {
  if (!has_experts(group)) {
    const auto of_node =
        std::ranges::find_if(group.members, [](const Member& m) { return m.node != kNone; });
    throw ConfigError("criterion \"reap\" scores experts, and the channels of ",
                      of_node == group.members.end()
                          ? group.id
                          : in_quotes(label_of(graph, graph.node(of_node->node))),
                      " are none: use it with granularity expert");
  }
  Scores scores = measured(options, Measure::kContribution, group, "reap");
  const auto& unmeasured = options.statistics->unmeasured;
  if (const auto why = unmeasured.find(group.id); why != unmeasured.end()) {
    throw ConfigError("criterion \"reap\" cannot measure the experts at ",
                      in_quotes(group.mixes_at), ": ", why->second);
  }
  const Scores routed = measured(options, Measure::kRouted, group, "reap");
  for (size_t e = 0; e < scores.size(); ++e) scores[e] = routed[e] > 0 ? scores[e] / routed[e] : 0;
  return scores;
}

Scores taylor(const Graph& /*graph*/, const Group& group, const CriterionOptions& options) {
  return measured(options, Measure::kTaylor, group, "taylor");
}

Scores taylor_squared(const Graph& /*graph*/, const Group& group, const CriterionOptions& options) {
  return measured(options, Measure::kTaylorSquared, group, "taylor_squared");
}

Scores fisher(const Graph& /*graph*/, const Group& group, const CriterionOptions& options) {
  return measured(options, Measure::kFisher, group, "fisher");
}

Scores movement(const Graph& /*graph*/, const Group& group, const CriterionOptions& options) {
  const Statistics* statistics = options.statistics;
  if (statistics == nullptr || !statistics->channels.contains(Measure::kMovement)) {
    throw errors::needs_training("movement");
  }
  return measured(options, Measure::kMovement, group, "movement");
}

Scores obd(const Graph& /*graph*/, const Group& group, const CriterionOptions& options) {
  return measured(options, Measure::kHessian, group, "obd");
}

}  // namespace parsimony::criteria
