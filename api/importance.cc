#include "parsimony/api/importance.h"

#include <algorithm>
#include <utility>

#include "parsimony/pruners/importance.h"
#include "parsimony/speedup/make_plan.h"

namespace parsimony {

std::optional<Trial> cut(const Coupled& network, const AxisMasks& masks) {
  const auto& [graph, probe, facts, coupling] = network;
  PlanAttempt made = make_plan(graph, facts, coupling, masks);
  if (!made.refused.empty()) return std::nullopt;
  Trial small{std::move(made.plan), GraphEditor(graph, GraphEditor::Elements::kAll)};
  replay(small.plan, small.editor);
  const auto wanted = predict_shapes(facts, coupling, masks);
  if (!disagreements(small.graph(), probe, wanted).empty()) return std::nullopt;
  return small;
}

namespace {

/// Ascending widths at which a group of `size` is evaluated: its tenths, none twice.
std::vector<int> scored_widths(int size) {
  constexpr int kParts = 10;
  std::vector<int> widths;
  for (int part = 1; part < kParts; ++part) {
    const int width = size * part / kParts;
    if (width > 0 && (widths.empty() || width > widths.back())) widths.push_back(width);
  }
  return widths;
}

}  // namespace

ImportanceMeter::ImportanceMeter(const Coupled& network, const RSquared& r_squared)
    : network_(network), r_squared_(r_squared), whole_(r_squared(network.graph)) {}

std::vector<double> ImportanceMeter::curve(std::span<const GroupId> groups,
                                           const Candidate& candidate) const {
  const int size = candidate.limits.size;
  std::vector<std::pair<int, double>> known;
  for (const int width : scored_widths(size)) {
    AxisMasks masks = AxisMasks::all_kept(network_.coupling);
    for (const GroupId group : groups) {
      keep_best(candidate, width, masks.keep[group]);
    }
    if (keep_at_least_one(network_.coupling, {}, masks) > 0) continue;
    const auto small = cut(network_, masks);
    if (!small) return {};
    known.emplace_back(width, r_squared_(small->graph()) / std::max(whole_, 1e-9));
  }
  const auto says_something = [](const auto& at) { return at.second > 0; };
  if (std::ranges::none_of(known, says_something)) return {};
  return interpolated_curve(size, known);
}

}  // namespace parsimony
