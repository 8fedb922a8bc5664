// How much each of several cuts removes.
#include <algorithm>
#include <cmath>

#include "parsimony/configs/recipe.h"

namespace parsimony {
namespace {

/// Of all channels, when a share `done` of the cuts is made.
double share_gone(PruningSchedule schedule, double done, double ratio) {
  switch (schedule) {
    case PruningSchedule::kLinear:
      return ratio * done;
    case PruningSchedule::kAgp:
      return ratio * (1 - std::pow(1 - done, 3));
    case PruningSchedule::kLottery:
      return 1 - std::pow(1 - ratio, done);
    case PruningSchedule::kOneShot:
    case PruningSchedule::kAnnealing:
      break;  // one cut
  }
  return ratio;
}

}  // namespace

bool asks_for(const ConfigList& config, std::string_view criterion) {
  return std::any_of(config.entries.begin(), config.entries.end(), [&](const ConfigEntry& entry) {
    return !entry.exclude && entry.request.criterion == criterion;
  });
}

ConfigList at_sparsity(ConfigList config, double ratio, const std::string& criterion) {
  for (ConfigEntry& entry : config.entries) {
    Request& request = entry.request;
    if (entry.exclude || (request.ratio == 0 && !request.amount && !request.threshold)) continue;
    request.ratio = ratio;
    request.amount.reset();
    request.also.clear();
    request.threshold.reset();
    if (!criterion.empty()) request.criterion = criterion;
  }
  return config;
}

std::vector<double> sparsities(const PruneSettings& settings, double ratio) {
  std::vector<double> result;
  for (int step = 1; step < settings.steps; ++step) {
    const double done = static_cast<double>(step) / settings.steps;
    result.push_back(share_gone(settings.schedule, done, ratio));
  }
  result.push_back(ratio);
  return result;
}

std::vector<ConfigList> cuts(const PruneSettings& settings) {
  std::vector<ConfigList> result(sparsities(settings, 0).size(), settings.config);
  for (size_t e = 0; e < settings.config.entries.size(); ++e) {
    double gone = 0;
    const std::vector<double> targets =
        sparsities(settings, settings.config.entries[e].request.ratio);
    for (size_t i = 0; i < targets.size(); ++i) {
      // Rounding must not cost a channel.
      const double share = gone > 0 ? 1 - (1 - targets[i]) / (1 - gone) + 1e-9 : targets[i];
      result[i].entries[e].request.ratio = share;
      gone = targets[i];
    }
  }
  return result;
}

}  // namespace parsimony
