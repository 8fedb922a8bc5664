// P5: removes every proper part of a channel's slices and looks whether the graph still fits.
#include <algorithm>
#include <set>
#include <utility>

#include "parsimony/base/errors.h"
#include "parsimony/graph/model_editor.h"
#include "parsimony/graph/weights.h"
#include "tests/properties/properties.h"

namespace parsimony::test {
namespace {

using Part = std::pair<std::string, int>;  // tensor and axis

// All subsets of this many parts are tried; of more only single ones and what they leave.
constexpr size_t kFewParts = 8;

std::set<Part> parts_of(const Plan& plan) {
  std::set<Part> parts;
  for (const PlanGroup& group : plan.groups) {
    for (const PlanSlice& slice : group.slices) parts.emplace(slice.tensor, slice.axis);
  }
  return parts;
}

Plan only(Plan plan, const std::set<Part>& parts) {
  for (PlanGroup& group : plan.groups) {
    std::erase_if(group.slices, [&](const PlanSlice& s) {
      return !parts.contains({s.tensor, s.axis});
    });
  }
  return plan;
}

/// Do all operators fit, and are the outputs as they were?
bool is_sound(const Workbench& bench, const Plan& plan) {
  try {
    GraphEditor editor(bench.graph());
    replay(plan, editor);
    const Facts facts = infer(editor.graph(), bench.probe());
    for (const ValueId v : bench.graph().outputs) {
      if (facts.shapes[v] != bench.facts().shapes[v]) return false;
    }
    // What does not fit inside a body has no shape.
    for (const ValueId v : bench.facts().shapes.ids()) {
      if (bench.facts().shapes[v] && !facts.shapes[v]) return false;
    }
    // Nor does what bodies hand on, unless it changes in the original too.
    const std::string changes = "its size changes";
    return misfit(editor.graph(), facts).empty() &&
           misfit(editor.graph(), facts, changes) == misfit(bench.graph(), bench.facts(), changes);
  } catch (const Error&) {
    return false;
  }
}

std::vector<std::set<Part>> proper_parts(const std::vector<Part>& all) {
  std::vector<std::set<Part>> result;
  if (all.size() <= kFewParts) {
    for (unsigned bits = 1; bits + 1 < 1U << all.size(); ++bits) {
      std::set<Part>& part = result.emplace_back();
      for (size_t i = 0; i < all.size(); ++i) {
        if ((bits >> i & 1U) != 0) part.insert(all[i]);
      }
    }
    return result;
  }
  for (const Part& one : all) {
    result.push_back({one});
    std::set<Part>& rest = result.emplace_back(all.begin(), all.end());
    rest.erase(one);
  }
  return result;
}

std::string describe(const Group& group, const std::set<Part>& parts) {
  std::string text = group.id + ": could go without the rest:";
  for (const auto& [tensor, axis] : parts) text += " " + tensor + "[" + std::to_string(axis) + "]";
  return text;
}

}  // namespace

std::string maximality(const Workbench& bench, bool) {
  for (const GroupId g : bench.coupling().groups.ids()) {
    const Group& group = bench.coupling().groups[g];
    if (group.size < 3) continue;  // what shrinks to 1 is broadcast
    // Of constant indices, operators take some as well as all.
    const auto has_table = [&](const Member& member) {
      return is_table(bench.graph(), bench.graph().value(member.value));
    };
    if (std::ranges::any_of(group.members, has_table)) continue;
    if (has_experts(group)) continue;  // numbers that select fit any length
    const Plan plan = bench.plan(without(bench.coupling(), {{g, 0}}));
    // A Slice or a list of indices that is patched, or is not, fits parts by accident.
    if (!plan.integers.empty()) continue;
    const std::set<Part> parts = parts_of(plan);
    for (const auto& part : proper_parts({parts.begin(), parts.end()})) {
      if (is_sound(bench, only(plan, part))) return describe(group, part);
    }
  }
  return "";
}

}  // namespace parsimony::test
