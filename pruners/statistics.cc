#include "parsimony/pruners/statistics.h"

#include <algorithm>

#include "parsimony/pruners/criteria/surgeon.h"
#include "parsimony/pruners/criterion.h"
#include "parsimony/pruners/layers.h"
#include "parsimony/pruners/units.h"

namespace parsimony {

std::span<const double> Statistics::of(Measure measure, const Group& group) const {
  const auto found = channels.find(measure);
  const auto at = std::ranges::find(groups, group.id);
  const GroupId id(at - groups.begin());
  if (found == channels.end() || !found->second.has(id)) return {};
  return found->second[id];
}

namespace {

/// Returns the criterion of a request, or all that it compares.
std::vector<std::string> criteria_of(const Request& request) {
  return request.criteria.empty() ? std::vector{request.criterion} : request.criteria;
}

}  // namespace

Needs needs_of(const Settings& settings) {
  Needs needs;
  for (const LayerSetting& layer : settings.layers) {
    if (layer.state != LayerSetting::State::kPruned || layer.request == kNone) continue;
    const Request& request = settings.requests[layer.request];
    for (std::string& name : criteria_of(request)) {
      const Criterion& criterion = find_criterion(name);
      if (!criterion.measure) continue;
      needs.channels.insert(*criterion.measure);
      needs.criteria.insert(std::move(name));
    }
  }
  return needs;
}

void add_reader_needs(const Graph& graph, const Coupling& coupling, const Settings& settings,
                      Needs& needs) {
  const auto reads_inputs = [](const std::string& criterion) {
    return find_criterion(criterion).reads_inputs;
  };
  if (std::ranges::none_of(needs.criteria, reads_inputs)) return;
  const Followed followed = follow(graph, Layers(graph), coupling, settings);
  for (const GroupId g : coupling.groups.ids()) {
    const int request = followed.request[g];
    if (request == kNone) continue;
    if (std::ranges::none_of(criteria_of(settings.requests[request]), reads_inputs)) continue;
    for (std::string& name : criteria::surgeon_matrices(graph, coupling.groups[g])) {
      needs.inputs.insert(std::move(name));
    }
  }
}

}  // namespace parsimony
