#include "parsimony/pruners/candidates.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <string_view>

#include "parsimony/base/errors.h"
#include "parsimony/base/parallel.h"
#include "parsimony/base/ranges.h"
#include "parsimony/base/words.h"
#include "parsimony/pruners/given_scores.h"
#include "parsimony/pruners/statistics.h"

namespace parsimony {
namespace {

int block_of(Target target, bool bytes) {
  switch (target) {
    case Target::kX86Avx512:
      return 16;
    case Target::kArmNeon:
    case Target::kCudaTensorCore:
      return bytes ? 16 : 8;
    case Target::kX86Avx2:
    case Target::kGeneric:
      return 8;
  }
  return 1;
}

}  // namespace

int multiple_for(Target target, const Graph& graph, const Group& group) {
  int multiple = 1;
  for (const Member& member : group.members) {
    const Weight& weight = graph.weight_of(member.value);
    if (member.role != Role::kOut || weight.dims.size() < 2 || member.offsets.size() < 2) continue;
    const int block = block_of(target, size_of(weight.dtype) == 1);
    const int elements = member.offsets[1] - member.offsets[0];
    multiple = std::lcm(multiple, block / std::gcd(block, elements));
  }
  while (multiple > 1 && group.size < 2 * multiple) multiple /= 2;
  return multiple;
}

namespace {

constexpr size_t kMostRounds = 16;

uint64_t mixed(uint64_t seed, uint64_t value) {
  uint64_t x = (seed ^ value) + 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

uint64_t mixed(uint64_t seed, std::string_view text) {
  for (const char c : text) seed = mixed(seed, static_cast<unsigned char>(c));
  return seed;
}

/// Mixes the values into the seed; their order does not matter.
uint64_t of_bag(uint64_t seed, std::vector<uint64_t> values) {
  std::ranges::sort(values);
  for (const uint64_t value : values) seed = mixed(seed, value);
  return seed;
}

using Labels = std::map<NodeId, uint64_t>;

/// Operators, and the weights of the group that they read.
Labels first_labels(const Graph& graph, const Group& group, const std::vector<NodeId>& nodes) {
  std::map<NodeId, std::vector<uint64_t>> read;
  for (const Member& member : group.members) {
    if (member.node == kNone) continue;
    const Weight& weight = graph.weight_of(member.value);
    const uint64_t label =
        mixed(static_cast<uint64_t>(member.role), static_cast<uint64_t>(member.axis));
    read[member.node].push_back(mixed(label, weight.dims.size()));
  }
  Labels labels;
  for (const NodeId node : nodes) {
    labels[node] = of_bag(mixed(1, graph.node(node).op), read[node]);
  }
  return labels;
}

/// Labels of the neighbours, those that feed a node apart from those that it feeds.
Labels refined(const Graph& graph, const Labels& labels) {
  std::map<NodeId, std::vector<uint64_t>> around;
  for (const auto& [node, label] : labels) {
    for (const ValueId input : graph.node(node).inputs) {
      if (input == kNone) continue;
      const NodeId producer = graph.value(input).producer;
      const auto before = producer == kNone ? labels.end() : labels.find(producer);
      if (before == labels.end()) continue;
      around[node].push_back(mixed(2, before->second));
      around[producer].push_back(mixed(3, label));
    }
  }
  Labels result;
  for (const auto& [node, label] : labels) result[node] = of_bag(label, around[node]);
  return result;
}

/// Nodes along which each group runs.
PerGroup<std::vector<NodeId>> nodes_of_groups(const Coupling& coupling) {
  PerGroup<std::vector<NodeId>> nodes(coupling.groups.size());
  for (const DimClassId dim_class : coupling.dim_classes()) {
    GroupId last = kNone;  // channels of a group mostly lie side by side
    for (const ChannelId& channel : coupling.channels(dim_class)) {
      if (channel.group == kNone || channel.group == last) continue;
      last = channel.group;
      if (!coupling.dim_class_nodes.has(dim_class)) continue;
      const auto& named = coupling.dim_class_nodes[dim_class];
      auto& here = nodes[last];
      here.insert(here.end(), named.begin(), named.end());
    }
  }
  for (const GroupId g : nodes.ids()) {
    for (const Member& member : coupling.groups[g].members) {
      if (member.node != kNone) nodes[g].push_back(member.node);
    }
    sort_unique(nodes[g]);
  }
  return nodes;
}

}  // namespace

PerGroup<uint64_t> subgraph_shapes(const Graph& graph, const Coupling& coupling) {
  const PerGroup<std::vector<NodeId>> nodes = nodes_of_groups(coupling);
  PerGroup<uint64_t> shapes;
  for (const GroupId g : coupling.groups.ids()) {
    Labels labels = first_labels(graph, coupling.groups[g], nodes[g]);
    const size_t rounds = std::min(nodes[g].size(), kMostRounds);
    for (size_t round = 0; round < rounds; ++round) labels = refined(graph, labels);
    std::vector<uint64_t> values;
    for (const auto& [node, label] : labels) values.push_back(label);
    const uint64_t seed = mixed(4, values.size());
    shapes.push_back(of_bag(seed, std::move(values)));
  }
  return shapes;
}

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
    score_all(units);
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
    if (options_.given != nullptr) {
      Scores found = given_scores(graph_, group(g), *options_.given);
      if (!found.empty()) return found;
    }
    const ScoreFunction scoring =
        options_.own ? options_.own : ScoreFunction(find_criterion(request(r).criterion).score);
    // Criteria over what is read know who reads.
    const bool whole = !request(r).in_channels || find_criterion(request(r).criterion).reads_inputs;
    if (whole) return scoring(graph_, group(g), options_);
    return scoring(graph_, as_read(group(g), r), options_);
  }

  /// Returns on how many threads groups may be scored: each has matrices of its own.
  int threads() const {
    constexpr int64_t kMostBytes = int64_t{1} << 30;
    constexpr int64_t kMatrices = 3;
    const auto is_lazy = [](const Weight& weight) { return weight.data == nullptr; };
    if (options_.own || std::ranges::any_of(graph_.weights, is_lazy)) return 1;
    int64_t bytes = 1;
    for (const Weight& weight : graph_.weights) {
      bytes = std::max(bytes, weight.count() * kMatrices * int64_t{sizeof(double)});
    }
    if (options_.statistics != nullptr) {
      for (const auto& [name, moments] : options_.statistics->inputs) {
        bytes = std::max(bytes, moments.second.size() * kMatrices * int64_t{sizeof(double)});
      }
    }
    return static_cast<int>(
        std::clamp<int64_t>(kMostBytes / bytes, 1, std::max(1, options_.threads)));
  }

  void score_all(const std::vector<Unit>& units) {
    std::vector<GroupId> groups;
    for (const Unit& unit : units)
      groups.insert(groups.end(), unit.scored.begin(), unit.scored.end());
    scores_.resize(coupling_.groups.size());
    parallel_for(std::ssize(groups), threads(),
                 [&](int64_t i) { scores_[groups[i]] = score(groups[i]); });
  }

  /// A unit that the criterion cannot score is not pruned.
  void add(Unit unit) {
    Scores sum(group(unit.groups.front()).size);
    for (const GroupId g : unit.scored) {
      const Scores& scores = scores_[g];
      if (scores.empty()) {
        result_.conflicts.push_back({g, "is not pruned: " + why_not_scored(unit)});
        return;
      }
      for (size_t c = 0; c < sum.size(); ++c) sum[c] += scores[c];
    }
    result_.candidates.push_back(candidate_of(unit, sum));
    const std::vector<double> ranks = ranks_of(result_.candidates.back(), request(unit.request));
    for (const GroupId g : unit.groups) result_.ranks[g] = ranks;
    result_.units.push_back(std::move(unit));
  }

  std::string why_not_scored(const Unit& unit) const {
    const std::string& criterion = request(unit.request).criterion;
    const bool measured = !options_.own && find_criterion(criterion).measure.has_value();
    if (!measured) return str_cat("criterion \"", criterion, "\" cannot score it");
    return str_cat("nothing was measured there for criterion \"", criterion, "\"");
  }

  GroupLimits limits_of(const Request& asked, GroupId g) const {
    GroupLimits limits = parsimony::limits_of(asked, group(g).size);
    limits.most = std::max(0, std::min(limits.most, group(g).size - group(g).least));
    limits.least = std::min(limits.least, limits.most);
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
  PerGroup<Scores> scores_;  ///< empty: not scored
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
    const Weight& weight = graph.weight_of(member.value);
    if (member.role != Role::kOut || weight.dims.size() < 2 || member.size == 0) continue;
    elements += weight.count() / member.size * static_cast<int64_t>(member.indices.size());
  }
  return std::max<int64_t>(1, elements / std::max(1, group.size));
}

}  // namespace parsimony
