#include "parsimony/speedup/make_plan.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "parsimony/base/errors.h"
#include "parsimony/base/ranges.h"
#include "parsimony/graph/infer.h"
#include "parsimony/graph/operators/factor.h"
#include "parsimony/graph/operators/node_view.h"
#include "parsimony/graph/operators/schema.h"
#include "parsimony/graph/slice.h"
#include "parsimony/masks/cost.h"
#include "parsimony/masks/mask.h"

namespace parsimony {
namespace {

/// Freezes numbers that are computed from a shape and used as data: a scale such as
/// 1/sqrt(channels) keeps its old value. Only what counts a sum over the pruned axis follows, the N
/// of a mean, if the sum is part of an operator that mixes the channels, as in a layer norm;
/// otherwise the original with zeros still divides by all of them.
class Freezer {
 public:
  Freezer(const Graph& graph, const Facts& before, const Facts& after, const Coupling& coupling)
      : graph_(graph), before_(before), after_(after), coupling_(coupling) {}

  /// Adds what follows to `followed`.
  void freeze(PatchView& view, std::vector<PlanInteger>& followed) const {
    const Node& node = view.before.node();
    const OpSchema* schema = followed_schema(node);
    // Operands of irregular rules are shapes and are updated; trip counts of loops are not.
    if (schema != nullptr && schema->line.empty() && !node.has_subgraph) return;
    for (int i = 0; i < view.before.inputs(); ++i) {
      const ValueId value = view.before.input(i);
      if (value == kNone || !before_.computed[value]) continue;
      const auto& was = before_.constants[value];
      const auto& is = after_.constants[value];
      if (!was || !is || *was == *is) continue;
      std::string what = "operand " + std::to_string(i);
      if (counts_a_sum(node, i, 0)) {
        followed.push_back({key_of(graph_, node), std::move(what), i, *was, *is});
      } else {
        view.set_input(i, std::move(what), *was);
      }
    }
  }

 private:
  static constexpr int kDeepest = 8;  // products and copies between the sum and what counts it

  /// Does the node combine the operand with a sum over an axis that shrank and whose channels mix?
  bool counts_a_sum(const Node& node, int operand, int depth) const {
    for (int i = 0; i < std::ssize(node.inputs); ++i) {
      if (i != operand && is_sum(node.inputs[i], depth)) return true;
    }
    return false;
  }

  /// Is it such a sum, or a multiple of one by a number that is computed, too?
  bool is_sum(ValueId value, int depth) const {
    const NodeId producer = value == kNone ? kNone : graph_.value(value).producer;
    if (producer == kNone || depth == kDeepest) return false;
    const Node& node = graph_.node(producer);
    if (node.inputs.empty() || node.inputs[0] == kNone) return false;
    if (has_trait(node, kReduces)) return shrank_and_mixes(node.inputs[0]);
    if (has_trait(node, kCopies)) return is_sum(node.inputs[0], depth + 1);
    if (!has_trait(node, kMultiplies) && !has_trait(node, kDivides)) return false;
    for (int i = 0; i < std::ssize(node.inputs); ++i) {
      const ValueId input = node.inputs[i];
      if (input != kNone && before_.computed[input] && counts_a_sum(node, i, depth + 1)) {
        return true;
      }
    }
    return false;
  }

  bool shrank_and_mixes(ValueId value) const {
    const auto& was = before_.shapes[value];
    const auto& is = after_.shapes[value];
    if (!was || !is) return false;
    for (size_t d = 0; d < was->size(); ++d) {
      const DimClassId dim_class = coupling_.dim_class_of(value, static_cast<int>(d));
      if ((*was)[d] == (*is)[d] || dim_class == kNone) continue;
      const auto channels = coupling_.channels(dim_class);
      if (std::ranges::any_of(channels, [&](const ChannelId& c) {
            return c.group != kNone && coupling_.groups[c.group].mixes;
          })) {
        return true;
      }
    }
    return false;
  }

  const Graph& graph_;
  const Facts& before_;
  const Facts& after_;
  const Coupling& coupling_;
};

/// Did the shape of an operand or result of the node change, or may the places that it reads?
bool touched(const Node& node, const Facts& before, const Facts& after) {
  if (has_trait(node, kMatches)) return true;
  const auto changed = [&](ValueId v) {
    if (v == kNone) return false;
    return before.shapes[v] != after.shapes[v] ||
           (before.computed[v] && before.constants[v] != after.constants[v]);
  };
  return std::ranges::any_of(node.inputs, changed) || std::ranges::any_of(node.outputs, changed);
}

/// Lists computed from sizes must keep their length, which determines the rank of their reader's
/// result. @throws UnsupportedError
void want_same_lengths(const NodeView& before, const NodeView& after) {
  for (int i = 0; i < before.inputs(); ++i) {
    const HostTensor* was = before.constant(i);
    const HostTensor* is = after.constant(i);
    if (was != nullptr && is != nullptr && was->count() != is->count()) {
      throw UnsupportedError("a list of another length would be read");
    }
  }
}

/// The branches that leave with channels as a whole, by their sums.
std::map<NodeId, PlanBlock> find_leaving(const Graph& graph, const Coupling& coupling,
                                         const AxisMasks& masks) {
  std::map<NodeId, PlanBlock> leaving;
  for (const GroupId g : coupling.groups.ids()) {
    for (const auto& [channel, branch, weights] : coupling.groups[g].branches) {
      if (masks.keeps({g, channel})) continue;
      const std::string& add = key_of(graph, graph.node(branch.add));
      leaving.try_emplace(branch.add, PlanBlock{add, branch.kept_input, coupling.groups[g].id});
    }
  }
  return leaving;
}

/// The integers that smaller shapes require. Nodes whose integers cannot be adapted are added to
/// `refused`, numbers that follow by themselves to `followed`.
std::vector<Patch> find_patches(const Graph& graph, const Facts& facts, const Coupling& coupling,
                                const AxisMasks& masks, const IdVector<NodeId, bool>& gone,
                                std::vector<NodeId>& refused, std::vector<PlanInteger>& followed) {
  Facts after{predict_shapes(facts, coupling, masks), {}, facts.computed};
  after.constants = reevaluate(graph, facts, after.shapes);

  IdVector<DimClassId, std::vector<int64_t>> kept_of_dim_class;
  for (const DimClassId dim_class : coupling.dim_classes()) {
    kept_of_dim_class.push_back(kept_indices(coupling, masks, dim_class));
  }
  const std::function<const std::vector<int64_t>*(ValueId, int)> kept =
      [&](ValueId value, int dim) -> const std::vector<int64_t>* {
    const DimClassId dim_class = coupling.dim_class_of(value, dim);
    if (dim_class == kNone || kept_of_dim_class[dim_class].empty()) return nullptr;
    return &kept_of_dim_class[dim_class];
  };

  const Freezer freezer(graph, facts, after, coupling);
  std::vector<Patch> patches;
  for (const NodeId n : graph.nodes.ids()) {
    const Node& node = graph.nodes[n];
    if (gone[n]) continue;
    const bool computed =
        !node.outputs.empty() && node.outputs[0] != kNone && facts.computed[node.outputs[0]];
    const OpSchema* schema = followed_schema(node);
    if (computed || schema == nullptr || !touched(node, facts, after)) continue;
    const NodeView was(graph, node, facts);
    const NodeView is(graph, node, after);
    PatchView view(was, is, kept, patches);
    const auto before = static_cast<std::ptrdiff_t>(patches.size());
    try {
      want_same_lengths(was, is);
      if (schema->patch != nullptr) schema->patch(view);
      patch_bindings(view);
      const size_t followed_before = followed.size();
      freezer.freeze(view, followed);
      const auto is_shared = [&](const Patch& patch) { return graph.node(patch.node).calls > 1; };
      if (std::any_of(patches.begin() + before, patches.end(), is_shared) ||
          (node.calls > 1 && followed.size() > followed_before)) {
        refused.push_back(n);
      }
    } catch (const Error&) {
      refused.push_back(n);
    }
  }
  if (refused.empty()) refused = graph.source->unwritable(graph, patches);
  return patches;
}

/// Names the tensor that each reader of a weight reads: the weight itself, or a copy where readers
/// of a vector keep different indices.
class Naming {
 public:
  Naming(const Graph& graph, const Coupling& coupling, const AxisMasks& masks,
         const IdVector<NodeId, bool>& gone, Plan& plan)
      : graph_(graph), coupling_(coupling), masks_(masks), gone_(gone), plan_(plan) {
    std::map<WeightId, std::vector<ValueId>> shared;
    for (const ValueId v : graph.values.ids()) {
      const Value& value = graph.values[v];
      const auto leaves = [&](const Use& use) { return gone[use.node]; };
      if (value.weight == kNone || !value.is_read()) continue;
      if (!value.uses.empty() && std::ranges::all_of(value.uses, leaves)) continue;
      shared[value.weight].push_back(v);
    }
    for (const auto& [weight, values] : shared) {
      if (values.size() > 1) separate(graph.weight(weight).name, values);
    }
  }

  const std::string& name_of(ValueId value) const {
    const auto it = names_.find(value);
    return it != names_.end() ? it->second : graph_.weight_of(value).name;
  }

 private:
  void separate(const std::string& name, std::vector<ValueId> values) {
    // The reader that could not be separated keeps the original.
    std::stable_partition(values.begin(), values.end(),
                          [&](ValueId v) { return !graph_.value(v).shared_copy; });
    const auto kept = [&](ValueId v) {
      return kept_of(coupling_, masks_, coupling_.value_dim_classes[v]);
    };
    std::map<std::vector<std::vector<int64_t>>, std::string> name_of_what_stays;
    name_of_what_stays.emplace(kept(values[0]), name);
    for (const ValueId v : values) {
      const auto [it, fresh] = name_of_what_stays.try_emplace(kept(v));
      if (fresh) it->second = unused(name);
      if (it->second == name) continue;
      names_.emplace(v, it->second);
      for (const Use& use : graph_.value(v).uses) {
        if (gone_[use.node]) continue;
        plan_.copies.push_back(
            {it->second, name, key_of(graph_, graph_.node(use.node)), use.input});
      }
    }
  }

  std::string unused(const std::string& name) {
    if (taken_.empty()) {
      for (const Value& value : graph_.values) take(value.name);
      for (const Weight& weight : graph_.weights) take(weight.name);
    }
    for (int i = 2;; ++i) {
      std::string candidate = name + "_" + std::to_string(i);
      if (taken_.contains(candidate) || taken_.contains(without_path(candidate))) continue;
      take(candidate);
      return candidate;
    }
  }

  /// A name must not be hidden by that of a body either.
  void take(const std::string& name) {
    taken_.insert(name);
    taken_.insert(without_path(name));
  }

  static std::string without_path(const std::string& name) {
    const size_t at = name.rfind(kInside);
    return at == std::string::npos ? name : name.substr(at + kInside.size());
  }

  const Graph& graph_;
  const Coupling& coupling_;
  const AxisMasks& masks_;
  const IdVector<NodeId, bool>& gone_;
  Plan& plan_;
  std::unordered_map<ValueId, std::string> names_;
  std::unordered_set<std::string> taken_;
};

/// Adds the network's inputs or outputs that become shorter; none does unless it was set free.
void add_ends(const Graph& graph, const Coupling& coupling, const AxisMasks& masks, bool inputs,
              std::vector<PlanEnd>& ends) {
  for (const ValueId v : inputs ? graph.inputs : graph.outputs) {
    const auto& dims = coupling.value_dim_classes[v];
    for (int d = 0; d < std::ssize(dims); ++d) {
      if (dims[d] == kNone) continue;
      const auto size = static_cast<int64_t>(coupling.channels(dims[d]).size());
      std::vector<int64_t> keep = kept_indices(coupling, masks, dims[d]);
      if (!keep.empty()) ends.push_back({graph.value(v).name, inputs, d, size, std::move(keep)});
    }
  }
}

}  // namespace

PlanAttempt make_plan(const Graph& graph, const Facts& facts, const Coupling& coupling,
                      const AxisMasks& masks) {
  PlanAttempt attempt;
  Plan& plan = attempt.plan;
  plan.format = graph.format;
  std::vector<Bypass> bypasses;
  for (const auto& [add, block] : find_leaving(graph, coupling, masks)) {
    bypasses.push_back({add, block.kept_input});
    plan.blocks.push_back(block);
  }
  const IdVector<NodeId, bool> leaving = removed_by(graph, bypasses);
  const Naming naming(graph, coupling, masks, leaving, plan);
  for (const GroupId g : coupling.groups.ids()) {
    const Group& group = coupling.groups[g];
    const int kept = masks.kept(g);
    if (kept == group.size) continue;
    PlanGroup entry{group.id, group.size, kept, group.granularity, group.mixes, {}};
    std::set<std::tuple<std::string, int, Role>> seen;
    for (const Member& member : group.members) {
      if (member.node != kNone && leaving[member.node]) continue;
      const std::string& tensor = naming.name_of(member.value);
      if (!seen.emplace(tensor, member.axis, member.role).second) continue;
      entry.slices.push_back(
          {tensor, member.axis, member.role, member.size, kept_indices(member, masks.keep[g])});
    }
    if (!entry.slices.empty()) plan.groups.push_back(std::move(entry));
  }
  if (plan.groups.empty()) return attempt;
  add_ends(graph, coupling, masks, true, plan.ends);
  add_ends(graph, coupling, masks, false, plan.ends);
  for (Patch& patch :
       find_patches(graph, facts, coupling, masks, leaving, attempt.refused, plan.followed)) {
    plan.integers.push_back({key_of(graph, graph.node(patch.node)), std::move(patch.what),
                             patch.input, std::move(patch.from), std::move(patch.to)});
  }
  return attempt;
}

Probe small_probe(const Graph& graph, const Plan& plan, Probe probe) {
  for (size_t i = 0; i < probe.inputs.size() && i < graph.inputs.size(); ++i) {
    if (probe.inputs[i].open) continue;
    const auto axes = cuts_of_end(plan, graph.value(graph.inputs[i]).name, true);
    probe.inputs[i].dims = sliced(probe.inputs[i].dims, axes);
  }
  return probe;
}

std::vector<NodeId> disagreements(const Graph& small, const Probe& probe,
                                  const ValueShapes& predicted, ValueShapes* inferred) {
  try {
    Facts facts = infer(small, probe);
    for (const NodeId n : small.nodes.ids()) {
      for (const ValueId v : small.nodes[n].outputs) {
        if (v == kNone || facts.computed[v]) continue;
        if (facts.shapes[v] == predicted[v]) continue;
        return {n};  // later ones may be consequences
      }
    }
    if (inferred != nullptr) *inferred = std::move(facts.shapes);
  } catch (const ShapeError& error) {
    return {error.node()};
  }
  return {};
}

std::vector<UnprunedDim> unpruned_dims(const Graph& graph, const Coupling& coupling) {
  std::vector<UnprunedDim> result;
  for (const Obstacle& obstacle : coupling.obstacles) {
    const Value& value = graph.value(obstacle.value);
    const Shape& dims = graph.weight(value.weight).dims;
    const auto wide = std::ranges::count_if(dims, [](int64_t d) { return d > 1; });
    if (obstacle.structural || wide < 2) continue;
    std::string reason = obstacle.reason;
    if (obstacle.node != kNone) reason += " (" + label_of(graph, graph.node(obstacle.node)) + ")";
    const int64_t size = dims[obstacle.dim];
    if (obstacle.pinned < size) {
      reason = std::to_string(obstacle.pinned) + " of " + std::to_string(size) + ": " + reason;
    }
    result.push_back({value.name + "[" + std::to_string(obstacle.dim) + "]", std::move(reason)});
  }
  return result;
}

}  // namespace parsimony
