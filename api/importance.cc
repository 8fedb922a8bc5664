#include "parsimony/api/importance.h"

#include <algorithm>
#include <utility>

#include "parsimony/base/errors.h"
#include "parsimony/pruners/budget.h"
#include "parsimony/pruners/importance.h"
#include "parsimony/pruners/settings.h"
#include "parsimony/speedup/make_plan.h"

namespace parsimony {

std::optional<Trial> cut(const Coupled& network, const AxisMasks& masks) {
  const auto& [graph, probe, facts, coupling] = network;
  PlanAttempt made = make_plan(graph, facts, coupling, masks);
  if (!made.refused.empty()) return std::nullopt;
  Trial small{std::move(made.plan), GraphEditor(graph, GraphEditor::Elements::kAll)};
  replay(small.plan, small.editor);
  const auto requested = predict_shapes(facts, coupling, masks);
  if (!disagreements(small.graph(), probe, requested).empty()) return std::nullopt;
  return small;
}

namespace {

/// Returns the ascending widths at which a group of `size` is evaluated: its tenths, without
/// duplicates.
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
    if (keep_enough(network_.coupling, {}, masks) > 0) continue;
    const auto small = cut(network_, masks);
    if (!small) return {};
    known.emplace_back(width, r_squared_(small->graph()) / std::max(whole_, 1e-9));
  }
  const auto says_something = [](const auto& at) { return at.second > 0; };
  if (std::ranges::none_of(known, says_something)) return {};
  return interpolated_curve(size, known);
}

namespace {

/// Returns the error without the first `removed` channels of the order; empty if the network cannot
/// be pruned that way.
std::optional<double> error_without(const Graph& graph, const Analysis& analysis, GroupId group,
                                    const std::vector<int>& order, int removed,
                                    const NetworkError& error_of) {
  AxisMasks masks = AxisMasks::all_kept(analysis.coupling);
  for (int i = 0; i < removed; ++i) {
    masks.keep[group][order[i]] = 0;
  }
  if (keep_enough(analysis.coupling, {}, masks) > 0) return std::nullopt;
  const auto small = cut({graph, analysis.probe, analysis.facts, analysis.coupling}, masks);
  if (!small) return std::nullopt;
  return error_of(*small);
}

}  // namespace

std::vector<GroupSensitivity> sensitivity(const Graph& graph, const Analysis& analysis,
                                          const SensitivityOptions& options,
                                          const NetworkError& error_of) {
  const Criterion& criterion = find_criterion(options.criterion);
  if (criterion.score == nullptr) {
    throw ConfigError("criterion \"" + options.criterion +
                      "\" zeroes single elements; curves require a criterion for whole channels");
  }
  std::vector<GroupSensitivity> curves;
  for (const GroupId g : analysis.coupling.groups.ids()) {
    const Group& group = analysis.coupling.groups[g];
    if (group.size < 2) continue;
    if (options.progress) options.progress(group.id);
    const std::vector<int> order = removal_order(criterion.score(graph, group, options.scoring));
    GroupSensitivity result{g, {group.size, {}, {}}};
    int before = 0;
    double last = 0;
    bool whole = false;
    for (const double ratio : options.ratios) {
      const int removed = static_cast<int>(floor_of(ratio, group.size));
      if (removed != before) {
        const auto error = error_without(graph, analysis, g, order, removed, error_of);
        whole = !error.has_value();
        if (whole) break;
        last = *error;
        before = removed;
      }
      result.curve.ratios.push_back(ratio);
      result.curve.errors.push_back(last);
    }
    if (!whole || !result.curve.ratios.empty()) curves.push_back(std::move(result));
  }
  return curves;
}

}  // namespace parsimony
