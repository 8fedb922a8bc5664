#include "parsimony/masks/coupling.h"

#include <absl/container/flat_hash_map.h>
#include <absl/container/inlined_vector.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "parsimony/base/ranges.h"
#include "parsimony/graph/weights.h"
#include "parsimony/masks/coupling_impl.h"

namespace parsimony {
namespace {

/// A dimension of a weight, and the first node that reads it.
struct WeightRead {
  ValueId value = kNone;
  NodeId node = kNone;
  int dim = 0;
};

/// A dim class whose indices are all coupled cannot lose one of them.
bool is_one_class(const DimClasses& dim_classes, IndexClasses& classes, DimClassId dim_class) {
  for (int64_t i = 1; i < dim_classes.size(dim_class); ++i) {
    if (classes.root(dim_class, i) != classes.root(dim_class, 0)) return false;
  }
  return true;
}

/// Empty if nothing prevents pruning.
Obstacle obstacle_at(const DimClasses& dim_classes, IndexClasses& classes, const WeightRead& read) {
  const DimClassId dim_class = dim_classes.of(read.value, read.dim);
  Obstacle obstacle{read.value, read.dim, 0, kNone, false, {}};
  const Reason* why = nullptr;
  if (dim_classes.wholly_pinned(dim_class)) {
    obstacle.pinned = dim_classes.size(dim_class);
    why = &dim_classes.why_pinned(dim_class);
  } else {
    for (int64_t i = 0; i < dim_classes.size(dim_class); ++i) {
      const Reason* pin = classes.pinned(classes.root(dim_class, i));
      if (pin == nullptr) continue;
      ++obstacle.pinned;
      why = pin;
    }
  }
  if (why != nullptr) {
    obstacle.node = why->node;
    obstacle.structural = why->structural;
    obstacle.reason = why->words();
  } else if (is_one_class(dim_classes, classes, dim_class)) {
    obstacle.pinned = dim_classes.size(dim_class);
    obstacle.reason = "all its indices hang together as one channel";
  }
  return obstacle;
}

/// Weights that no node reads.
void add_unread(const Graph& graph, std::vector<Obstacle>& obstacles) {
  for (const ValueId v : graph.values.ids()) {
    const Value& value = graph.values[v];
    if (!is_weight(graph, value) || !value.uses.empty()) continue;
    const Shape& dims = graph.weight(value.weight).dims;
    for (size_t d = 0; d < dims.size(); ++d) {
      if (dims[d] <= 1) continue;
      const std::string reason = value.captured
                                     ? "leaves a body as it is, or is described by an annotation"
                                     : "is read by no node";
      obstacles.push_back({v, static_cast<int>(d), dims[d], kNone, false, reason});
    }
  }
}

std::vector<Obstacle> find_obstacles(const Graph& graph, const DimClasses& dim_classes,
                                     IndexClasses& classes, const std::vector<WeightRead>& reads) {
  std::vector<Obstacle> obstacles;
  for (const WeightRead& read : reads) {
    Obstacle obstacle = obstacle_at(dim_classes, classes, read);
    if (!obstacle.reason.empty()) obstacles.push_back(std::move(obstacle));
  }
  add_unread(graph, obstacles);
  return obstacles;
}

/// Combines index classes with the same weights into groups.
class Grouper {
 public:
  Grouper(const Graph& graph, const DimClasses& dim_classes, const Axes& axes, Effects effects,
          const CouplingOptions& options)
      : graph_(graph),
        dim_classes_(dim_classes),
        effects_(std::move(effects)),
        options_(options),
        classes_(dim_classes, axes),
        mixes_(classes_.first_occurrences(effects_.mixing)),
        softmaxes_(classes_.first_occurrences(softmaxes_among(effects_.mixing))),
        unweighted_(classes_.first_occurrences(effects_.unweighted)),
        experts_(classes_.first_occurrences(effects_.experts)) {}

  Coupling run() {
    result_.dim_class_begin = classes_.dim_class_begin();
    attach_weights();
    sign_classes();
    make_groups();
    find_nonzero();
    fill_members();
    add_branches();
    find_outcomes();
    name_policies();
    result_.obstacles = find_obstacles(graph_, dim_classes_, classes_, reads_);
    result_.value_dim_classes = dim_classes_.value_dim_classes();
    collect_nodes();
    find_least();
    return std::move(result_);
  }

 private:
  struct Signed {
    int dim_classes = 0;  // number of its list of dim classes with weights
    DimClassId last_dim_class = kNone;
    ChannelId channel;
  };

  /// Weights in the order in which nodes read them: it names the groups.
  void attach_weights() {
    weights_of_dim_class_.resize(dim_classes_.count());
    tables_of_dim_class_.resize(dim_classes_.count());
    IdVector<ValueId, bool> seen(graph_.values.size(), false);
    for (const NodeId n : graph_.nodes.ids()) {
      for (const ValueId v : graph_.nodes[n].inputs) {
        if (v == kNone || seen[v] || graph_.value(v).weight == kNone) continue;
        seen[v] = true;
        if (is_table(graph_, graph_.value(v))) attach_table(v, n);
        if (!is_weight(graph_, graph_.value(v))) continue;
        const auto& dims = dim_classes_.value_dim_classes()[v];
        for (size_t d = 0; d < dims.size(); ++d) {
          if (dims[d] == kNone) continue;
          reads_.push_back({v, n, static_cast<int>(d)});
          if (dim_classes_.wholly_pinned(dims[d])) continue;
          auto& here = weights_of_dim_class_[dims[d]];
          if (here.empty()) dim_class_order_.push_back(dims[d]);
          here.push_back(reads_.size() - 1);
        }
      }
    }
  }

  void attach_table(ValueId v, NodeId reader) {
    const auto& dims = dim_classes_.value_dim_classes()[v];
    for (size_t d = 0; d < dims.size(); ++d) {
      if (dims[d] == kNone || dim_classes_.wholly_pinned(dims[d])) continue;
      auto& here = tables_of_dim_class_[dims[d]];
      if (here.empty()) dim_classes_of_tables_.push_back(dims[d]);
      here.push_back({v, reader, static_cast<int>(d)});
    }
  }

  void sign_classes() {
    signed_.assign(classes_.count(), {});
    for (const DimClassId dim_class : dim_class_order_) {
      for (int64_t i = 0; i < classes_.length(dim_class); ++i) {
        const int32_t root = classes_.root(dim_class, i);
        if (classes_.pinned(root) != nullptr) continue;
        Signed& c = signed_[root];
        if (c.last_dim_class == dim_class) continue;
        c.last_dim_class = dim_class;
        const int next = static_cast<int>(longer_.size()) + 1;
        c.dim_classes = longer_.try_emplace({c.dim_classes, dim_class}, next).first->second;
      }
    }
  }

  void make_groups() {
    std::vector<GroupId> group_of(longer_.size() + 1);
    for (const DimClassId dim_class : dim_class_order_) {
      for (int64_t i = 0; i < classes_.length(dim_class); ++i) {
        const int32_t root = classes_.root(dim_class, i);
        Signed& c = signed_[root];
        if (c.last_dim_class == kNone || c.channel.group != kNone) continue;
        GroupId& own = group_of[c.dim_classes];
        if (own == kNone) {
          Group group;
          group.id = "g" + std::to_string(result_.groups.size());
          group.granularity = name_of(experts_[root] != kNone ? Granularity::kExpert : policy());
          own = result_.groups.push_back(std::move(group));
        }
        Group& group = result_.groups[own];
        c.channel = {own, group.size++};
        if (const NodeId node = mixes_[root]; node != kNone && !group.mixes) {
          group.mixes = true;
          group.mixes_at = label_of(graph_, graph_.node(node));
        }
        softmax_of_.resize(result_.groups.size(), kNone);
        if (softmax_of_[own] == kNone) softmax_of_[own] = softmaxes_[root];
        group.weighted = group.weighted && unweighted_[root] == kNone;
      }
    }
    for (int64_t e = 0; e < result_.dim_class_begin.back(); ++e) {
      result_.element_channel.push_back(signed_[classes_.root(e)].channel);
    }
  }

  /// A channel that is not zero at some activation does not vanish with its weights.
  void find_nonzero() {
    for (const ValueId v : graph_.values.ids()) {
      if (graph_.values[v].weight != kNone) continue;
      const auto& dims = dim_classes_.value_dim_classes()[v];
      for (size_t d = 0; d < dims.size(); ++d) {
        if (dims[d] == kNone || effects_.zero[v][d] != 0) continue;
        for (const ChannelId& c : result_.channels(dims[d])) {
          if (c.group != kNone) result_.groups[c.group].zero = false;
        }
      }
    }
  }

  void fill_members() {
    for (const DimClassId dim_class : dim_class_order_) {
      for_each_group(dim_class, [&](Group& group, Member& member) {
        for (const size_t r : weights_of_dim_class_[dim_class])
          add_members(group, member, reads_[r]);
      });
    }
    for (const DimClassId dim_class : dim_classes_of_tables_) {
      for_each_group(dim_class, [&](Group& group, Member& member) {
        member.role = Role::kWith;
        for (const WeightRead& read : tables_of_dim_class_[dim_class]) {
          member.value = read.value;
          member.node = read.node;
          member.axis = read.dim;
          member.of_layer = false;
          group.members.push_back(member);
        }
      });
    }
  }

  void add_branches() {
    for (const ExpertBranch& found : dim_classes_.branches()) {
      const auto channels = result_.channels(found.dim_class);
      if (channels.empty()) continue;
      const auto [group, channel] = channels[found.index];
      if (group == kNone) continue;
      auto& branches = result_.groups[group].branches;
      const auto same = [&](const ChannelBranch& b) { return b.branch == found.branch; };
      if (std::ranges::any_of(branches, same)) continue;
      branches.push_back(
          {channel, found.branch, weights_in(found.branch, channel, result_.groups[group].size)});
    }
  }

  std::vector<Member> weights_in(const Branch& branch, int channel, int channels) const {
    std::vector<Member> members;
    const auto inside = [&](const Use& use) {
      return std::ranges::binary_search(branch.nodes, use.node);
    };
    for (const NodeId n : branch.nodes) {
      for (const ValueId v : graph_.node(n).inputs) {
        if (v == kNone || !is_weight(graph_, graph_.value(v))) continue;
        const Shape& dims = graph_.weight_of(v).dims;
        if (dims.size() < 2 || !std::ranges::all_of(graph_.value(v).uses, inside)) continue;
        Member member;
        member.value = v;
        member.node = n;
        member.size = dims.front();
        member.offsets.assign(channels + 1, 0);
        std::fill(member.offsets.begin() + channel + 1, member.offsets.end(),
                  static_cast<int32_t>(member.size));
        for (int64_t i = 0; i < member.size; ++i) member.indices.push_back(i);
        members.push_back(std::move(member));
      }
    }
    return members;
  }

  /// Calls `add` with each group that has channels along the dim class, and their indices there.
  template <typename Add>
  void for_each_group(DimClassId dim_class, const Add& add) {
    // Indices of each channel on this dim class, gathered per group by counting.
    const std::span<const ChannelId> channels = result_.channels(dim_class);
    Few<GroupId> here;
    for (const ChannelId& c : channels) {
      if (c.group != kNone && !contains(here, c.group)) here.push_back(c.group);
    }
    for (const GroupId g : here) {
      Group& group = result_.groups[g];
      Member member;
      member.size = dim_classes_.size(dim_class);
      member.offsets.assign(group.size + 1, 0);
      for (const ChannelId& c : channels) {
        if (c.group == g) ++member.offsets[c.channel + 1];
      }
      for (size_t c = 1; c < member.offsets.size(); ++c) member.offsets[c] += member.offsets[c - 1];
      member.indices.resize(member.offsets.back());
      std::vector<int32_t> next(member.offsets.begin(), member.offsets.end() - 1);
      for (size_t i = 0; i < channels.size(); ++i) {
        if (channels[i].group != g) continue;
        member.indices[next[channels[i].channel]++] = static_cast<int64_t>(i);
      }
      add(group, member);
    }
  }

  /// The policy of what is no expert.
  Granularity policy() const {
    const bool experts = options_.granularity == Granularity::kExpert;
    return experts ? Granularity::kChannel : options_.granularity;
  }

  void find_least() {
    result_.least.assign(dim_classes_.count(), 1);
    for (const NodeId n : graph_.nodes.ids()) {
      const Factors& factors = dim_classes_.factors()[n];
      for (const Term& term : factors.terms) {
        const DimClassId dim_class = dim_classes_.of(term.value, term.dim);
        if (dim_class == kNone || term.labels.size() != 1) continue;
        int64_t& least = result_.least[dim_class];
        least = std::max(least, factors.labels[term.labels.front()].least);
      }
    }
    for (const DimClassId dim_class : dim_classes_.all()) {
      if (result_.least[dim_class] <= 1 || classes_.length(dim_class) == 0) continue;
      const auto channels = result_.channels(dim_class);
      if (channels.empty() || channels.front().group == kNone) continue;
      Group& group = result_.groups[channels.front().group];
      if (group.size != std::ssize(channels)) continue;
      group.least = std::max(group.least, static_cast<int>(result_.least[dim_class]));
    }
  }

  void add_members(Group& group, Member& member, const WeightRead& read) {
    member.value = read.value;
    member.node = read.node;
    member.axis = read.dim;
    const WeightId weight = graph_.value(read.value).weight;
    // Integers stand for what a layer multiplies by, or are indices, which nothing measures.
    member.of_layer = of_layers_[weight] || !is_floating(graph_.weight(weight).dtype);
    const uint8_t roles = effects_.roles[read.value][read.dim];
    for (const Role role : {Role::kOut, Role::kIn, Role::kWith}) {
      if ((roles & static_cast<uint8_t>(role)) == 0) continue;
      member.role = role;
      group.members.push_back(member);
    }
    member.role = Role::kOut;
    if (roles == 0) group.members.push_back(member);
  }

  std::vector<Occurrence> softmaxes_among(const std::vector<Occurrence>& mixing) const {
    std::vector<Occurrence> found;
    for (Occurrence event : mixing) {
      event.node = maker_of_outcomes(graph_, event.node);
      if (event.node != kNone) found.push_back(event);
    }
    return found;
  }

  void find_outcomes() {
    for (const GroupId g : softmax_of_.ids()) {
      Group& group = result_.groups[g];
      if (softmax_of_[g] == kNone || has_experts(group)) continue;
      const NodeId reader = reader_of_outcomes(graph_, dim_classes_, group, softmax_of_[g]);
      if (reader != kNone) group.outcomes_of = label_of(graph_, graph_.node(reader));
    }
  }

  /// Groups produced by a layer with its own policy have that policy's granularity.
  void name_policies() {
    for (const auto& [node, granularity] : options_.of_layers) {
      if (granularity == Granularity::kExpert) continue;
      for (Group& group : result_.groups) {
        const bool own =
            std::ranges::any_of(group.members, [&, layer = node](const Member& member) {
              return member.node == layer && member.role == Role::kOut;
            });
        if (own && !has_experts(group)) group.granularity = name_of(granularity);
      }
    }
  }

  void collect_nodes() {
    result_.dim_class_nodes.resize(dim_classes_.count());
    for (const DimClassId dim_class : dim_classes_.all()) {
      if (dim_classes_.wholly_pinned(dim_class)) continue;
      auto& nodes = result_.dim_class_nodes[dim_class];
      nodes.reserve(dim_classes_.terms(dim_class).size());
      for (const PlacedTerm& placed : dim_classes_.terms(dim_class)) nodes.push_back(placed.node);
      sort_unique(nodes);
    }
  }

  const Graph& graph_;
  const DimClasses& dim_classes_;
  Effects effects_;
  const CouplingOptions& options_;
  IndexClasses classes_;
  std::vector<NodeId> mixes_;       // per class root
  std::vector<NodeId> softmaxes_;   // per class root
  std::vector<NodeId> unweighted_;  // per class root
  std::vector<NodeId> experts_;     // per class root
  PerGroup<NodeId> softmax_of_;
  Coupling result_;
  std::vector<WeightRead> reads_;
  IdVector<WeightId, bool> of_layers_ = weights_of_layers(graph_);
  IdVector<DimClassId, absl::InlinedVector<size_t, 2>> weights_of_dim_class_;
  std::vector<DimClassId> dim_class_order_;  // dim classes with weights, in order of first use
  IdVector<DimClassId, absl::InlinedVector<WeightRead, 1>> tables_of_dim_class_;
  std::vector<DimClassId> dim_classes_of_tables_;
  std::vector<Signed> signed_;                                   // per class root
  absl::flat_hash_map<std::pair<int, DimClassId>, int> longer_;  // a list extended by one dim class
};

}  // namespace

bool may_prune(const Group& group, Mixing mixing) {
  if (mixing == Mixing::kExact) return !group.mixes;
  return mixing == Mixing::kAll || group.outcomes_of.empty();
}

bool has_experts(const Group& group) { return group.granularity == name_of(Granularity::kExpert); }

std::string_view name_of(Granularity granularity) {
  constexpr std::string_view kNames[] = {"channel", "head", "head_dim", "group", "expert"};
  return kNames[static_cast<size_t>(granularity)];
}

std::string_view name_of(Role role) {
  return role == Role::kOut ? "out" : role == Role::kIn ? "in" : "with";
}

DimClassId Coupling::dim_class_of(ValueId value, int dim) const {
  const auto& dims = value_dim_classes[value];
  return dim >= 0 && dim < std::ssize(dims) ? dims[dim] : kNone;
}

std::vector<NodeId> Coupling::ties(GroupId group) const {
  std::vector<NodeId> nodes;
  for (const DimClassId dim_class : dim_classes()) {
    const auto all = channels(dim_class);
    const bool here =
        std::ranges::any_of(all, [&](const ChannelId& c) { return c.group == group; });
    if (!here) continue;
    const auto& named = dim_class_nodes[dim_class];
    nodes.insert(nodes.end(), named.begin(), named.end());
  }
  sort_unique(nodes);
  return nodes;
}

Coupling couple(const Graph& graph, const Facts& facts, const CouplingOptions& options) {
  const DimClasses dim_classes(graph, facts, options);
  const Axes axes(graph, dim_classes, options);
  return Grouper(graph, dim_classes, axes, trace_effects(graph, facts, dim_classes, axes), options)
      .run();
}

}  // namespace parsimony
