#include "parsimony/pruners/candidates.h"

#include <algorithm>
#include <numeric>

#include "parsimony/base/errors.h"
#include "parsimony/pruners/hardware.h"
#include "parsimony/pruners/isomorphic.h"

namespace parsimony {

namespace {

class Scorer {
 public:
  Scorer(const Graph& graph, const Coupling& coupling, const Settings& settings,
         const CriterionOptions& options)
      : graph_(graph),
        coupling_(coupling),
        settings_(settings),
        options_(options),
        layers_(graph) {}

  Scored run() {
    Followed followed = follow(graph_, layers_, coupling_, settings_);
    own_request_ = followed.request;
    std::vector<Unit> units = tie(graph_, layers_, coupling_, settings_, followed);
    result_.conflicts = std::move(followed.conflicts);
    result_.ranks.resize(coupling_.groups.size());
    const bool any_isomorphic = std::ranges::any_of(
        settings_.requests, [](const Request& r) { return r.scope == Scope::kIsomorphic; });
    if (any_isomorphic) shapes_ = subgraph_shapes(graph_, coupling_);
    for (Unit& unit : units) add(std::move(unit));
    return std::move(result_);
  }

 private:
  const Request& request(int r) const { return settings_.requests[r]; }
  const Group& group(GroupId g) const { return coupling_.groups[g]; }

  /// A group as seen by the layers that read its channels: criteria score what produces them.
  Group as_read(const Group& group, int r) const {
    Group view = group;
    view.members.clear();
    for (Member member : group.members) {
      if (member.role != Role::kIn || member.node == kNone) continue;
      const std::vector<NodeId> users = layers_.using_weight_of(member.node);
      const bool asks = std::ranges::any_of(
          users, [&](NodeId layer) { return settings_.layers[layer].request == r; });
      if (!asks) continue;
      member.role = Role::kOut;
      view.members.push_back(std::move(member));
    }
    return view.members.empty() ? group : view;
  }

  Scores score(GroupId g) const {
    const int r = own_request_[g];
    const ScoreFunction scoring =
        options_.own ? options_.own : ScoreFunction(find_criterion(request(r).criterion).score);
    if (!request(r).in_channels) return scoring(graph_, group(g), options_);
    return scoring(graph_, as_read(group(g), r), options_);
  }

  /// A unit that the criterion cannot score is not pruned.
  void add(Unit unit) {
    Scores sum(group(unit.groups.front()).size);
    for (const GroupId g : unit.scored) {
      const Scores scores = score(g);
      if (scores.empty()) {
        result_.conflicts.push_back({g, "is not pruned: criterion \"" +
                                            request(unit.request).criterion +
                                            "\" cannot score it"});
        return;
      }
      for (size_t c = 0; c < sum.size(); ++c) sum[c] += scores[c];
    }
    result_.candidates.push_back(candidate_of(unit, sum));
    const std::vector<double> ranks = ranks_of(result_.candidates.back(), request(unit.request));
    for (const GroupId g : unit.groups) result_.ranks[g] = ranks;
    result_.units.push_back(std::move(unit));
  }

  Limits limits_of(const Request& asked, GroupId g) const {
    Limits limits = parsimony::limits_of(asked, group(g).size);
    if (asked.target) {
      const int measured = settings_.multiples.has(g) ? settings_.multiples[g] : 0;
      limits.round_to = std::lcm(
          limits.round_to, measured > 0 ? measured : multiple_for(*asked.target, graph_, group(g)));
    }
    return limits;
  }

  Candidate candidate_of(const Unit& unit, const Scores& sum) const {
    const Request& asked = request(unit.request);
    const int size = group(unit.groups.front()).size;
    Candidate candidate;
    candidate.limits = limits_of(asked, unit.groups.front());
    candidate.weight = 0;
    int blocks = 1;
    for (const GroupId g : unit.groups) {
      const Request& own = request(own_request_[g]);
      candidate.limits = stricter(candidate.limits, limits_of(own, g));
      blocks = std::lcm(blocks, own.metric_blocks);
      candidate.weight += weights_per_channel(graph_, group(g));
      if (!shapes_.empty()) candidate.shape += shapes_[g];
    }
    if (size % blocks != 0) {
      throw ConfigError("group ", group(unit.groups.front()).id, " has ", size,
                        " channels, which \"internal_metric_block\": ", blocks, " does not divide");
    }
    if (asked.threshold) {
      candidate.below = static_cast<int>(
          std::ranges::count_if(sum, [&](double s) { return s < *asked.threshold; }));
    }
    candidate.order = removal_order(sum, blocks);
    candidate.score = find_criterion(asked.criterion).comparable ? sum : normalised(sum);
    return candidate;
  }

  /// Considering each group alone, the rank of a channel is the ratio at which it is removed.
  static std::vector<double> ranks_of(const Candidate& candidate, const Request& request) {
    if (request.scope != Scope::kLocal || request.threshold) return candidate.score;
    const auto size = static_cast<double>(candidate.order.size());
    std::vector<double> ranks(candidate.order.size());
    for (size_t i = 0; i < ranks.size(); ++i) {
      ranks[candidate.order[i]] = static_cast<double>(i + 1) / size;
    }
    return ranks;
  }

  const Graph& graph_;
  const Coupling& coupling_;
  const Settings& settings_;
  const CriterionOptions& options_;
  const Layers layers_;
  PerGroup<int> own_request_;  ///< per group, before it was tied to others
  PerGroup<uint64_t> shapes_;
  Scored result_;
};

}  // namespace

Scored score_units(const Graph& graph, const Coupling& coupling, const Settings& settings,
                   const CriterionOptions& options) {
  return Scorer(graph, coupling, settings, options).run();
}

int64_t weights_per_channel(const Graph& graph, const Group& group) {
  int64_t elements = 0;
  for (const Member& member : group.members) {
    const Weight& weight = graph.weight(graph.value(member.value).weight);
    if (member.role != Role::kOut || weight.dims.size() < 2 || member.size == 0) continue;
    elements += weight.count() / member.size * static_cast<int64_t>(member.indices.size());
  }
  return std::max<int64_t>(1, elements / std::max(1, group.size));
}

}  // namespace parsimony
