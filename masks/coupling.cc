#include "parsimony/masks/coupling.h"

#include <absl/container/flat_hash_map.h>
#include <absl/container/inlined_vector.h>

#include <algorithm>
#include <utility>

#include "parsimony/graph/operators/operands.h"
#include "parsimony/masks/axes_impl.h"
#include "parsimony/masks/effects_impl.h"
#include "parsimony/masks/granularity.h"
#include "parsimony/masks/lines_impl.h"
#include "parsimony/masks/obstacles_impl.h"

namespace parsimony {
namespace {

/// Puts classes with the same weights together to groups.
class Grouper {
 public:
  Grouper(const Graph& graph, const Lines& lines, const Axes& axes, Effects effects,
          const CouplingOptions& options)
      : graph_(graph),
        lines_(lines),
        effects_(std::move(effects)),
        options_(options),
        classes_(lines, axes),
        mixes_(classes_.befallen(effects_.mixing)),
        unweighted_(classes_.befallen(effects_.unweighted)) {}

  Coupling run() {
    result_.line_begin = classes_.line_begin();
    attach_weights();
    sign_classes();
    make_groups();
    find_nonzero();
    fill_members();
    name_policies();
    result_.obstacles = find_obstacles(graph_, lines_, classes_, reads_);
    result_.value_lines = lines_.value_lines();
    collect_nodes();
    return std::move(result_);
  }

 private:
  struct Signed {
    int lines = 0;  // its list of lines with weights that the class touches, by number
    LineId last_line = kNone;
    ChannelId channel;
  };

  /// Weights in the order in which nodes read them: it names the groups.
  void attach_weights() {
    weights_on_line_.resize(lines_.count());
    IdVector<ValueId, bool> seen(graph_.values.size(), false);
    for (const NodeId n : graph_.nodes.ids()) {
      for (const ValueId v : graph_.nodes[n].inputs) {
        if (v == kNone || seen[v] || !is_weight(graph_, graph_.value(v))) continue;
        seen[v] = true;
        const auto& dims = lines_.value_lines()[v];
        for (size_t d = 0; d < dims.size(); ++d) {
          if (dims[d] == kNone) continue;
          reads_.push_back({v, n, static_cast<int>(d)});
          if (lines_.dead(dims[d])) continue;
          auto& here = weights_on_line_[dims[d]];
          if (here.empty()) line_order_.push_back(dims[d]);
          here.push_back(reads_.size() - 1);
        }
      }
    }
  }

  void sign_classes() {
    signed_.assign(classes_.count(), {});
    for (const LineId line : line_order_) {
      for (int64_t i = 0; i < classes_.length(line); ++i) {
        const int32_t root = classes_.root(line, i);
        if (classes_.pinned(root) != nullptr) continue;
        Signed& c = signed_[root];
        if (c.last_line == line) continue;
        c.last_line = line;
        const int next = static_cast<int>(longer_.size()) + 1;
        c.lines = longer_.try_emplace({c.lines, line}, next).first->second;
      }
    }
  }

  void make_groups() {
    std::vector<int> group_of(longer_.size() + 1, -1);
    for (const LineId line : line_order_) {
      for (int64_t i = 0; i < classes_.length(line); ++i) {
        const int32_t root = classes_.root(line, i);
        Signed& c = signed_[root];
        if (c.last_line == kNone || c.channel.group != kNone) continue;
        int& own = group_of[c.lines];
        if (own < 0) {
          own = static_cast<int>(result_.groups.size());
          Group group;
          group.id = "g" + std::to_string(result_.groups.size());
          group.granularity = name_of(options_.granularity);
          result_.groups.push_back(std::move(group));
        }
        Group& group = result_.groups[own];
        c.channel = {own, group.size++};
        if (const NodeId node = mixes_[root]; node != kNone && !group.mixes) {
          group.mixes = true;
          group.mixes_at = label_of(graph_, graph_.node(node));
        }
        group.weighted = group.weighted && unweighted_[root] == kNone;
      }
    }
    for (int64_t e = 0; e < result_.line_begin.back(); ++e) {
      result_.element_channel.push_back(signed_[classes_.root(e)].channel);
    }
  }

  /// A channel that is not zero at some activation is not gone when its weights are.
  void find_nonzero() {
    for (const ValueId v : graph_.values.ids()) {
      if (graph_.values[v].weight != kNone) continue;
      const auto& dims = lines_.value_lines()[v];
      for (size_t d = 0; d < dims.size(); ++d) {
        if (dims[d] == kNone || effects_.zero[v][d] != 0) continue;
        for (const ChannelId& c : result_.channels(dims[d])) {
          if (c.group != kNone) result_.groups[c.group].zero = false;
        }
      }
    }
  }

  void fill_members() {
    for (const LineId line : line_order_) {
      // Indices of each channel on this line, gathered per group by counting.
      const std::span<const ChannelId> channels = result_.channels(line);
      FewInts here;
      for (const ChannelId& c : channels) {
        if (c.group != kNone && std::find(here.begin(), here.end(), c.group) == here.end()) {
          here.push_back(c.group);
        }
      }
      for (const int g : here) {
        Group& group = result_.groups[g];
        Member member;
        member.size = lines_.size(line);
        member.offsets.assign(group.size + 1, 0);
        for (const ChannelId& c : channels) {
          if (c.group == g) ++member.offsets[c.channel + 1];
        }
        for (size_t c = 1; c < member.offsets.size(); ++c)
          member.offsets[c] += member.offsets[c - 1];
        member.indices.resize(member.offsets.back());
        std::vector<int32_t> next(member.offsets.begin(), member.offsets.end() - 1);
        for (size_t i = 0; i < channels.size(); ++i) {
          if (channels[i].group != g) continue;
          member.indices[next[channels[i].channel]++] = static_cast<int64_t>(i);
        }
        for (const size_t r : weights_on_line_[line]) add_members(group, member, reads_[r]);
      }
    }
  }

  void add_members(Group& group, Member& member, const WeightRead& read) {
    member.value = read.value;
    member.node = read.node;
    member.axis = read.dim;
    const uint8_t roles = effects_.roles[read.value][read.dim];
    for (const Role role : {Role::kOut, Role::kIn, Role::kWith}) {
      if ((roles & static_cast<uint8_t>(role)) == 0) continue;
      member.role = role;
      group.members.push_back(member);
    }
    member.role = Role::kOut;
    if (roles == 0) group.members.push_back(member);
  }

  /// Groups whose weights a layer with a policy of its own makes have that policy's name.
  void name_policies() {
    for (const auto& [node, granularity] : options_.of_layers) {
      for (Group& group : result_.groups) {
        const bool own = std::any_of(group.members.begin(), group.members.end(),
                                     [&, layer = node](const Member& member) {
                                       return member.node == layer && member.role == Role::kOut;
                                     });
        if (own) group.granularity = name_of(granularity);
      }
    }
  }

  void collect_nodes() {
    result_.line_nodes.resize(lines_.count());
    for (const LineId line : lines_.all()) {
      if (lines_.dead(line)) continue;
      auto& nodes = result_.line_nodes[line];
      nodes.reserve(lines_.terms(line).size());
      for (const PlacedTerm& placed : lines_.terms(line)) nodes.push_back(placed.node);
      std::sort(nodes.begin(), nodes.end());
      nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
    }
  }

  const Graph& graph_;
  const Lines& lines_;
  Effects effects_;
  const CouplingOptions& options_;
  Classes classes_;
  std::vector<NodeId> mixes_;       // per class root
  std::vector<NodeId> unweighted_;  // per class root
  Coupling result_;
  std::vector<WeightRead> reads_;
  IdVector<LineId, absl::InlinedVector<size_t, 2>> weights_on_line_;
  std::vector<LineId> line_order_;  // lines with weights, in order of first use
  std::vector<Signed> signed_;      // per class root
  absl::flat_hash_map<std::pair<int, LineId>, int> longer_;  // a list, longer by one line
};

}  // namespace

std::string_view name_of(Granularity granularity) {
  switch (granularity) {
    case Granularity::kHead:
      return "head";
    case Granularity::kHeadDim:
      return "head_dim";
    case Granularity::kGroup:
      return "group";
    case Granularity::kChannel:
      break;
  }
  return "channel";
}

std::string_view name_of(Role role) {
  switch (role) {
    case Role::kOut:
      return "out";
    case Role::kIn:
      return "in";
    case Role::kWith:
      break;
  }
  return "with";
}

LineId Coupling::line_of(ValueId value, int dim) const {
  const auto& dims = value_lines[value];
  return dim >= 0 && dim < std::ssize(dims) ? dims[dim] : kNone;
}

std::vector<NodeId> Coupling::ties(int group) const {
  std::vector<NodeId> nodes;
  for (const LineId line : lines()) {
    const auto all = channels(line);
    const bool here =
        std::any_of(all.begin(), all.end(), [&](const ChannelId& c) { return c.group == group; });
    if (!here) continue;
    const auto& named = line_nodes[line];
    nodes.insert(nodes.end(), named.begin(), named.end());
  }
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  return nodes;
}

Coupling couple(const Graph& graph, const Facts& facts, const CouplingOptions& options) {
  const Lines lines(graph, facts, options.keep_whole);
  const Axes axes(graph, lines, options);
  return Grouper(graph, lines, axes, trace_effects(graph, facts, lines, axes), options).run();
}

}  // namespace parsimony
