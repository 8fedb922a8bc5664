#include "parsimony/training/run/ratio_search.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>
#include <utility>

#include "parsimony/base/errors.h"

namespace parsimony::training {
namespace {

/// Returns the request of the first entry that prunes.
const Request& request_of(const ConfigList& config) {
  return std::ranges::find(config.entries, false, &ConfigEntry::exclude)->request;
}

std::unique_ptr<TrainableModel> copy_of(TrainableModel& net) {
  std::unique_ptr<TrainableModel> copy = net.clone_architecture();
  copy_values(net, *copy);
  return copy;
}

std::set<std::string> matrices_of(TrainableModel& net) {
  std::set<std::string> names;
  for (const auto& [name, tensor] : net.parameters()) {
    if (tensor.dim() >= 2) names.insert(name);
  }
  return names;
}

}  // namespace

std::vector<int> rounded_with_sum(const std::vector<double>& expected) {
  std::vector<int> counts;
  for (const double count : expected) counts.push_back(static_cast<int>(std::floor(count + 1e-9)));
  const double sum = std::accumulate(expected.begin(), expected.end(), 0.0);
  auto missing = std::lround(sum) - std::accumulate(counts.begin(), counts.end(), 0L);
  std::vector<size_t> order(expected.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const auto remainder = [&](size_t i) { return expected[i] - counts[i]; };
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return remainder(a) > remainder(b); });
  for (size_t i = 0; i < order.size() && missing > 0; ++i, --missing) ++counts[order[i]];
  return counts;
}

PruneResult RatioSearch::pruned(TrainableModel& copy, const ConfigList& config) const {
  PruneRequest request = cut_;
  request.config = config;
  request.verify = false;
  return copy.prune(example_, request, services_);
}

std::vector<RatioSearch::Searched> RatioSearch::find(TrainableModel& net) const {
  const std::unique_ptr<TrainableModel> trial = copy_of(net);
  const std::set<std::string> matrices = matrices_of(*trial);
  const PruneResult cut = pruned(*trial, settings_.config);
  std::vector<Searched> groups;
  for (const PlanGroup& group : cut.plan.groups) {
    Searched searched{{}, group.size, group.size - group.kept};
    for (const PlanSlice& slice : group.slices) {
      if (slice.role == Role::kOut && matrices.contains(slice.tensor)) {
        searched.layers.push_back(slice.tensor);
      }
    }
    if (searched.removed > 0 && !searched.layers.empty()) groups.push_back(std::move(searched));
  }
  return groups;
}

Annealing RatioSearch::begin(const std::vector<Searched>& groups, const PruneSettings& settings,
                             uint64_t seed) {
  const double most = request_of(settings.config).max_ratio;
  std::vector<AnnealedShare> shares;
  double removed = 0;
  double total = 0;
  for (const Searched& group : groups) {
    const double size = group.size;
    shares.push_back({size, std::min(std::floor(most * size + 1e-9), size - 1) / size});
    removed += group.removed;
    total += size;
  }
  AnnealingOptions options;
  options.steps = settings.search_steps;
  options.seed = seed;
  return Annealing(std::move(shares), total > 0 ? removed / total : 0, options);
}

RatioSearch::RatioSearch(TrainableModel& net, const at::Tensor& example,
                         const PruneSettings& settings, const PruneRequest& cut,
                         const PruneServices& services)
    : example_(example),
      settings_(settings),
      cut_(cut),
      services_(services),
      groups_(find(net)),
      search_(begin(groups_, settings, cut.seed)) {}

ConfigList RatioSearch::config(const std::vector<double>& shares) const {
  std::vector<double> expected;
  for (size_t g = 0; g < groups_.size(); ++g) expected.push_back(shares[g] * groups_[g].size);
  const std::vector<int> counts = rounded_with_sum(expected);
  ConfigList config = settings_.config;
  for (size_t g = 0; g < groups_.size(); ++g) {
    ConfigEntry entry;
    entry.op_names = groups_[g].layers;
    entry.request = request_of(settings_.config);
    entry.request.scope = Scope::kLocal;
    entry.request.ratio = static_cast<double>(counts[g]) / groups_[g].size;
    entry.source.place = "annealing: group " + std::to_string(g);
    config.entries.push_back(std::move(entry));
  }
  return config;
}

double RatioSearch::step(TrainableModel& net, const LossOf& loss) {
  const std::unique_ptr<TrainableModel> trial = copy_of(net);
  double found = std::numeric_limits<double>::infinity();
  try {
    pruned(*trial, config(search_.candidate()));
    found = loss(*trial);
  } catch (const UnsupportedError&) {  // e.g. sizes that a layer does not support
  }
  if (std::isnan(found)) found = std::numeric_limits<double>::infinity();
  search_.tell(found);
  return found;
}

std::vector<double> to_numbers(const Annealing::State& state) {
  std::vector<double> numbers = {static_cast<double>(state.step), state.energy, state.best_energy,
                                 state.first_energy};
  numbers.insert(numbers.end(), state.current.begin(), state.current.end());
  numbers.insert(numbers.end(), state.best.begin(), state.best.end());
  return numbers;
}

Annealing::State to_annealing_state(const std::vector<double>& numbers) {
  constexpr size_t kLone = 4;
  const auto first = numbers.begin() + static_cast<std::ptrdiff_t>(kLone);
  const auto half = static_cast<std::ptrdiff_t>((numbers.size() - kLone) / 2);
  return {static_cast<int>(numbers.at(0)),
          {first, first + half},
          {first + half, numbers.end()},
          numbers.at(1),
          numbers.at(2),
          numbers.at(3)};
}

}  // namespace parsimony::training
