#include "parsimony/api/blame.h"

#include "parsimony/base/errors.h"
#include "parsimony/base/ranges.h"
#include "parsimony/speedup/make_plan.h"
#include "parsimony/speedup/proof.h"

namespace parsimony {
namespace {

/// Groups that lose channels, in the plan's order.
std::vector<GroupId> pruned_groups(const Pruning& pruning) {
  std::vector<GroupId> groups;
  for (const GroupId g : pruning.allocation.masks.keep.ids()) {
    const auto& keep = pruning.allocation.masks.keep[g];
    if (contains(keep, 0)) groups.push_back(g);
  }
  return groups;
}

std::string description(const Graph& graph, const Group& group) {
  std::string text = "group " + group.id;
  std::string before = " (";
  for (const Member& member : group.members) {
    if (member.role != Role::kOut) continue;
    const std::string& label = label_of(graph, graph.node(member.node));
    if (text.ends_with(label)) continue;
    text += before + label;
    before = ", ";
  }
  return text + (before == ", " ? ")" : "");
}

}  // namespace

std::optional<GroupAtFault> group_at_fault(const Graph& graph, const Pruning& pruning,
                                           const std::function<bool(const Plan&)>& differs) {
  const Analysis& analysis = pruning.analysis;
  const std::vector<GroupId> groups = pruned_groups(pruning);
  const auto differ = [&](size_t n) {
    AxisMasks masks = AxisMasks::all_kept(analysis.coupling);
    for (size_t i = 0; i < n; ++i) masks.keep[groups[i]] = pruning.allocation.masks.keep[groups[i]];
    Plan plan = make_plan(graph, analysis.facts, analysis.coupling, masks).plan;
    if (!pruning.plan.scales.empty()) {
      rescale(graph, frozen_scales(graph, analysis.facts, analysis.coupling, masks, plan), plan);
    }
    return differs(plan);
  };
  try {
    if (groups.empty() || !differ(groups.size())) return std::nullopt;
    const size_t guilty = first_guilty(groups.size(), differ);
    const Group& group = analysis.coupling.groups[groups[guilty]];
    return GroupAtFault{group.id, description(graph, group)};
  } catch (const UnsupportedError&) {
    return std::nullopt;
  }
}

}  // namespace parsimony
