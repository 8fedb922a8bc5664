#include "parsimony/speedup/make_plan.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "parsimony/base/errors.h"
#include "parsimony/graph/infer.h"
#include "parsimony/graph/slice.h"
#include "parsimony/masks/cost.h"
#include "parsimony/speedup/patches_impl.h"

namespace parsimony {
namespace {

/// Names the tensor that each reader of a weight reads: the weight itself, or a copy where readers
/// of a vector keep different indices.
class Naming {
 public:
  Naming(const Graph& graph, const Coupling& coupling, const AxisMasks& masks, Plan& plan)
      : graph_(graph), coupling_(coupling), masks_(masks), plan_(plan) {
    std::map<WeightId, std::vector<ValueId>> shared;
    for (const ValueId v : graph.values.ids()) {
      const Value& value = graph.values[v];
      if (value.weight == kNone || !value.is_read()) continue;
      shared[value.weight].push_back(v);
    }
    for (const auto& [weight, values] : shared) {
      if (values.size() > 1) separate(graph.weight(weight).name, values);
    }
  }

  const std::string& name_of(ValueId value) const {
    const auto it = names_.find(value);
    return it != names_.end() ? it->second : graph_.weight(graph_.value(value).weight).name;
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
  Plan& plan_;
  std::unordered_map<ValueId, std::string> names_;
  std::unordered_set<std::string> taken_;
};

/// What becomes shorter of the network's inputs or outputs; nothing does unless it was set free.
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
  const Naming naming(graph, coupling, masks, plan);
  for (const GroupId g : coupling.groups.ids()) {
    const Group& group = coupling.groups[g];
    const int kept = masks.kept(g);
    if (kept == group.size) continue;
    PlanGroup entry{group.id, group.size, kept, group.granularity, group.mixes, {}};
    std::set<std::tuple<std::string, int, Role>> seen;
    for (const Member& member : group.members) {
      const std::string& tensor = naming.name_of(member.value);
      if (!seen.emplace(tensor, member.axis, member.role).second) continue;
      entry.slices.push_back({tensor, member.axis, std::string(name_of(member.role)), member.size,
                              kept_indices(member, masks.keep[g])});
    }
    plan.groups.push_back(std::move(entry));
  }
  if (plan.groups.empty()) return attempt;
  add_ends(graph, coupling, masks, true, plan.ends);
  add_ends(graph, coupling, masks, false, plan.ends);
  for (Patch& patch : find_patches(graph, facts, coupling, masks, attempt.refused)) {
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
