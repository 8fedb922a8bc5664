#include "parsimony/pruners/statistics.h"

#include <algorithm>

#include "parsimony/pruners/criterion.h"

namespace parsimony {

std::span<const double> Statistics::of(Measure measure, const Group& group) const {
  const auto found = channels.find(measure);
  const auto at = std::ranges::find(groups, group.id);
  const GroupId id(at - groups.begin());
  if (found == channels.end() || !found->second.has(id)) return {};
  return found->second[id];
}

Needs needs_of(const Settings& settings) {
  Needs needs;
  for (const LayerSetting& layer : settings.layers) {
    if (layer.state != LayerSetting::State::kPruned || layer.request == kNone) continue;
    const Request& request = settings.requests[layer.request];
    const Criterion& criterion = find_criterion(request.criterion);
    if (!criterion.measure) continue;
    needs.channels.insert(*criterion.measure);
    needs.criteria.insert(request.criterion);
  }
  return needs;
}

}  // namespace parsimony
