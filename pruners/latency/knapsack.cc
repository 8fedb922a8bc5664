#include "parsimony/pruners/latency/knapsack.h"

#include <algorithm>
#include <limits>

namespace parsimony {
namespace {

constexpr size_t kMostStates = 4096;

/// A partial sum, and how it came about.
struct State {
  double cost = 0;
  double value = 0;
  int before = 0;  ///< state of the items before
  int option = 0;
};

/// Leaves what no cheaper state reaches the value of, by ascending cost and value.
std::vector<State> undominated(std::vector<State> states) {
  std::ranges::sort(states, [](const State& a, const State& b) {
    return a.cost != b.cost ? a.cost < b.cost : a.value > b.value;
  });
  std::vector<State> kept;
  for (const State& state : states) {
    if (kept.empty() || state.value > kept.back().value) kept.push_back(state);
  }
  return kept;
}

/// Of states whose costs are nearly the same, the last: the most valuable.
std::vector<State> thinned(const std::vector<State>& states) {
  if (states.size() <= kMostStates) return states;
  const double low = states.front().cost;
  const double step = (states.back().cost - low) / kMostStates;
  std::vector<State> kept;
  size_t bin = std::numeric_limits<size_t>::max();
  for (const State& state : states) {
    const auto here = static_cast<size_t>((state.cost - low) / step);
    if (here == bin) {
      kept.back() = state;
    } else {
      kept.push_back(state);
    }
    bin = here;
  }
  // The cheapest may be the only one that leaves the others enough.
  if (kept.front().cost != states.front().cost) kept.insert(kept.begin(), states.front());
  return kept;
}

double cheapest(const std::vector<KnapsackOption>& options) {
  double cost = std::numeric_limits<double>::infinity();
  for (const KnapsackOption& option : options) cost = std::min(cost, option.cost);
  return cost;
}

}  // namespace

std::optional<std::vector<int>> best_options(const std::vector<std::vector<KnapsackOption>>& items,
                                             double budget) {
  double rest = 0;  // the least that the items to come will cost
  for (const auto& options : items) rest += cheapest(options);
  std::vector<std::vector<State>> stages = {{State{}}};
  for (const auto& options : items) {
    rest -= cheapest(options);
    std::vector<State> next;
    const std::vector<State>& last = stages.back();
    for (size_t s = 0; s < last.size(); ++s) {
      for (size_t o = 0; o < options.size(); ++o) {
        const double cost = last[s].cost + options[o].cost;
        if (cost + rest > budget) continue;
        next.push_back(
            {cost, last[s].value + options[o].value, static_cast<int>(s), static_cast<int>(o)});
      }
    }
    if (next.empty()) return std::nullopt;
    stages.push_back(thinned(undominated(std::move(next))));
  }
  std::vector<int> chosen(items.size());
  size_t state = stages.back().size() - 1;
  if (stages.back()[state].cost > budget) return std::nullopt;
  for (size_t i = items.size(); i > 0; --i) {
    const State& at = stages[i][state];
    chosen[i - 1] = at.option;
    state = at.before;
  }
  return chosen;
}

}  // namespace parsimony
