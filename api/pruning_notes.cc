// What users should know of a pruning.
#include <algorithm>
#include <string>
#include <vector>

#include "parsimony/api/prune_impl.h"
#include "parsimony/base/ranges.h"
#include "parsimony/base/words.h"
#include "parsimony/graph/operators/node_view.h"
#include "parsimony/graph/operators/schema.h"

namespace parsimony {
namespace {

void note_conflicts(const Coupling& coupling, Pruning& pruning) {
  for (const Conflict& conflict : pruning.allocation.conflicts) {
    const std::string who = conflict.group == kNone
                                ? std::string()
                                : "group " + coupling.groups[conflict.group].id + ": ";
    pruning.notes.push_back(who + conflict.reason);
  }
  if (const int back = pruning.allocation.given_back; back > 0) {
    pruning.notes.push_back(std::to_string(back) + (back == 1 ? " channel" : " channels") +
                            " were restored, because a dimension would have become empty");
  }
}

/// Notes outcomes of a softmax, which are kept although nothing prevents their removal.
void note_outcomes(const Coupling& coupling, Mixing mixing, std::vector<std::string>& notes) {
  if (mixing != Mixing::kExceptOutcomes) return;
  for (const Group& group : coupling.groups) {
    if (group.outcomes_of.empty()) continue;
    notes.push_back(
        "group " + group.id + " was not pruned: \"" + group.outcomes_of +
        "\" weights the outputs of a softmax over its channels by position, so removing a channel "
        "changes the meaning of the others; --allow-mixing prunes it");
  }
}

/// Is it a product of two activations for each element of a batch, such as for each head?
bool pairs_batches(const Graph& graph, const Facts& facts, const Node& node) {
  constexpr size_t kRank = 3;
  if (!has_trait(node, kPairs) || node.inputs.size() != 2 || node.inputs[1] == kNone) return false;
  const auto& shape = facts.shapes[node.inputs[1]];
  return shape && shape->size() >= kRank && graph.value(node.inputs[1]).weight == kNone;
}

/// Heads were asked for: names attention of which parts of each head are removed instead.
void note_whole_heads(const Graph& graph, Pruning& pruning) {
  const Coupling& coupling = pruning.analysis.coupling;
  const auto is_removed = [&](const ChannelId& channel) {
    return channel.group != kNone && !pruning.allocation.masks.keeps(channel);
  };
  for (const Node& node : graph.nodes) {
    if (!has_trait(node, kAttends) && !pairs_batches(graph, pruning.analysis.facts, node)) continue;
    const Factors factors = factor(NodeView(graph, node, pruning.analysis.facts));
    const auto is_of_head = [&](const Term& term) {
      const Label& label = factors.labels[term.labels.front()];
      const bool contracted = !has_trait(node, kAttends) && label.contracted;
      return term.value == node.inputs[0] && term.labels.size() == 1 &&
             (contracted || label.role == notation::LabelRole::kHeadDim);
    };
    for (const Term& term : factors.terms) {
      if (term.labels.empty() || !is_of_head(term)) continue;
      const DimClassId dim_class = coupling.dim_class_of(term.value, term.dim);
      if (dim_class == kNone || std::ranges::none_of(coupling.channels(dim_class), is_removed)) {
        continue;
      }
      pruning.notes.push_back("node \"" + label_of(graph, node) +
                              "\": no head of it can be removed; parts of each head are, as with "
                              "granularity head_dim");
      break;
    }
  }
}

/// Experts were asked for: says where no more of them could leave, or that there are none.
void note_experts(const Settings& settings, Pruning& pruning) {
  const auto asks = [](const Request& request) {
    return request.granularity == Granularity::kExpert;
  };
  if (settings.granularity != Granularity::kExpert &&
      std::ranges::none_of(settings.requests, asks)) {
    return;
  }
  const Coupling& coupling = pruning.analysis.coupling;
  if (std::ranges::none_of(coupling.groups, has_experts)) {
    pruning.notes.push_back("no experts were found that can leave");
  }
  for (const GroupId g : coupling.groups.ids()) {
    const Group& group = coupling.groups[g];
    if (group.least <= 1 || group.least >= group.size) continue;
    if (pruning.allocation.masks.kept(g) > group.least) continue;
    pruning.notes.push_back("group " + group.id + ": " + std::to_string(group.least) + " of " +
                            std::to_string(group.size) +
                            " experts stay, as many as each token chooses");
  }
}

/// States that were found, and inputs and outputs with other sizes than callers know.
void note_interface(const Graph& graph, const PruneRequest& request, Pruning& pruning) {
  if (contains(request.interface.states, "auto")) {
    for (const PlanState& state : pruning.plan.states) {
      pruning.notes.push_back("output \"" + state.output +
                              "\" is taken for what the next run reads as input \"" + state.input +
                              "\"");
    }
  }
  const std::vector<PlanEnd>& ends = pruning.plan.ends;
  for (auto end = ends.begin(); end != ends.end();) {
    const PlanEnd& first = *end;
    const auto& values = first.input ? graph.inputs : graph.outputs;
    const auto value =
        std::ranges::find_if(values, [&](ValueId v) { return graph.value(v).name == first.value; });
    Shape before = *pruning.analysis.facts.shapes[*value];
    Shape after = before;
    for (; end != ends.end() && end->value == first.value && end->input == first.input; ++end) {
      after[end->axis] = std::ssize(end->keep);
    }
    pruning.notes.push_back((first.input ? "input \"" : "output \"") + first.value +
                            "\" shrinks from " + to_string(before) + " to " + to_string(after));
  }
}

}  // namespace

void add_notes(const Graph& graph, const PruneRequest& request, const Settings& settings,
               Pruning& pruning) {
  const Coupling& coupling = pruning.analysis.coupling;
  if (settings.granularity == Granularity::kHead) note_whole_heads(graph, pruning);
  note_conflicts(coupling, pruning);
  note_outcomes(coupling, request.mixing, pruning.notes);
  note_experts(settings, pruning);
  note_interface(graph, request, pruning);
}

}  // namespace parsimony
