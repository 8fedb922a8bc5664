#include "parsimony/api/sensitivity.h"

#include "parsimony/base/errors.h"
#include "parsimony/pruners/budget.h"
#include "parsimony/pruners/settings.h"

namespace parsimony {
namespace {

/// The error without the first `removed` channels of the order; empty if the network cannot be
/// pruned that way.
std::optional<double> error_without(const Graph& graph, const Analysis& analysis, GroupId group,
                                    const std::vector<int>& order, int removed,
                                    const NetworkError& error_of) {
  AxisMasks masks = AxisMasks::all_kept(analysis.coupling);
  for (int i = 0; i < removed; ++i) {
    masks.keep[group][order[i]] = 0;
  }
  if (keep_at_least_one(analysis.coupling, {}, masks) > 0) return std::nullopt;
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
                      "\" zeroes single elements; curves are of whole channels");
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
