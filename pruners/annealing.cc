#include "parsimony/pruners/annealing.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <utility>

#include "parsimony/base/errors.h"
#include "parsimony/base/words.h"

namespace parsimony {
namespace {

/// Uniform in [0, 1); std::uniform_real_distribution differs between libraries.
double uniform(std::mt19937_64& draw) { return static_cast<double>(draw() >> 11) * 0x1p-53; }

size_t index(std::mt19937_64& draw, size_t size) {
  return std::min(size - 1, static_cast<size_t>(uniform(draw) * static_cast<double>(size)));
}

/// Gives all groups the same share; where a group may not lose so much, the others lose more.
std::vector<double> even_shares(const std::vector<AnnealedShare>& groups, double ratio) {
  double total = 0;
  double possible = 0;
  for (const AnnealedShare& group : groups) {
    total += group.weight;
    possible += group.weight * group.most;
  }
  constexpr double kSlack = 1e-9;
  if (possible + kSlack < ratio * total) {
    throw ConfigError(formatted("cannot remove %g%% of the channels: ", ratio * 100),
                      formatted("their layers allow %g%%", possible / total * 100));
  }
  double low = 0;
  double high = 1;
  std::vector<double> shares(groups.size());
  constexpr int kHalvings = 60;
  for (int i = 0; i < kHalvings; ++i) {
    const double level = (low + high) / 2;
    double sum = 0;
    for (size_t g = 0; g < groups.size(); ++g) {
      shares[g] = std::min(level, groups[g].most);
      sum += groups[g].weight * shares[g];
    }
    (sum < ratio * total ? low : high) = level;
  }
  return shares;
}

}  // namespace

Annealing::Annealing(std::vector<AnnealedShare> groups, double ratio,
                     const AnnealingOptions& options)
    : groups_(std::move(groups)), options_(options) {
  state_.current = state_.best = even_shares(groups_, ratio);
}

std::vector<double> Annealing::candidate() const {
  std::vector<double> shares = state_.current;
  if (state_.step == 0 || groups_.size() < 2) return shares;
  std::mt19937_64 draw(options_.seed * 0x9e3779b97f4a7c15U + static_cast<uint64_t>(state_.step));
  const double cooled = 1 - static_cast<double>(state_.step) / options_.steps;
  constexpr int kTries = 100;  // a group at its bound has nothing to move
  for (int i = 0; i < kTries; ++i) {
    const size_t from = index(draw, groups_.size());
    const size_t to = index(draw, groups_.size());
    if (from == to) continue;
    const double requested = uniform(draw) * options_.stride * std::max(cooled, 0.1);
    const double room = std::min(shares[from] * groups_[from].weight,
                                 (groups_[to].most - shares[to]) * groups_[to].weight);
    const double moved =
        std::min(room, requested * std::min(groups_[from].weight, groups_[to].weight));
    if (!(moved > 0)) continue;
    shares[from] -= moved / groups_[from].weight;
    shares[to] += moved / groups_[to].weight;
    break;
  }
  return shares;
}

void Annealing::tell(double energy) {
  std::vector<double> tried = candidate();
  const bool first = state_.step == 0;
  if (first) state_.first_energy = energy;
  const double progress = static_cast<double>(state_.step) / options_.steps;
  const double temperature = std::abs(state_.first_energy) * options_.begin *
                             std::pow(options_.end / options_.begin, progress);
  std::mt19937_64 draw(~options_.seed * 0xbf58476d1ce4e5b9U + static_cast<uint64_t>(state_.step));
  const double worse = energy - state_.energy;
  const bool accepted =
      first || worse <= 0 || uniform(draw) < std::exp(-worse / std::max(temperature, 1e-300));
  if (first || energy < state_.best_energy) {
    state_.best = tried;
    state_.best_energy = energy;
  }
  if (accepted) {
    state_.current = std::move(tried);
    state_.energy = energy;
  }
  ++state_.step;
}

}  // namespace parsimony
