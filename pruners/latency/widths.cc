#include "parsimony/pruners/latency/widths.h"

#include <algorithm>
#include <cstdlib>
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

/// Leaves, of states whose costs are nearly the same, the last: the most valuable.
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

namespace {

constexpr int kBudgetSteps = 10;
constexpr int kRounds = 4;          ///< knapsacks at the last step
constexpr double kReach = 0.2;      ///< of a group's channels, that it may move in a step
constexpr int kMostLevels = 48;     ///< widths of a group that are considered
constexpr int kMostExchanges = 60;  ///< moves at the end

/// A width that a group may have, and what is kept with it.
struct Level {
  int kept = 0;
  double value = 0;
};

/// Widths that the limits allow, ascending; of large groups only those of a power of two apart.
std::vector<Level> levels_of(const WidthCandidate& unit) {
  const Candidate& candidate = unit.candidate;
  const int size = candidate.limits.size;
  int step = 1;
  while (size / step > kMostLevels) step *= 2;
  std::vector<Level> levels;
  for (int kept = 1; kept <= size; ++kept) {
    if (kept % step != 0 && kept != size && kept != 1) continue;
    const int allowed = size - candidate.limits.removed(size - kept);
    if (!levels.empty() && levels.back().kept >= allowed) continue;
    levels.push_back({allowed, unit.layers * log_importance(unit.curve[allowed])});
  }
  return levels;
}

class Chooser {
 public:
  Chooser(const LatencyModel& model, std::span<const WidthCandidate> candidates,
          const PerGroup<int>& dense)
      : model_(model), candidates_(candidates), kept_(dense) {
    for (const WidthCandidate& each : candidates) {
      levels_.push_back(levels_of(each));
      at_.push_back(levels_.back().size() - 1);
    }
    for (size_t i = 0; i < candidates.size(); ++i) set(i, at_[i]);
  }

  WidthChoice run(double expected) {
    const double begin = model_.seconds(kept_);
    for (int step = 1; step <= kBudgetSteps && begin > expected; ++step) {
      const double share = static_cast<double>(step) / kBudgetSteps;
      move(begin + share * (expected - begin), kReach);
    }
    double reach = kReach;
    for (int round = 0; round < kRounds; ++round) {
      approach(expected, reach);
      reach /= 2;
    }
    make_feasible(expected);
    for (int i = 0; i < kMostExchanges && improve(expected); ++i) {
    }
    WidthChoice choice{kept_, model_.seconds(kept_), value(), true};
    choice.feasible = choice.seconds <= expected;
    return choice;
  }

 private:
  void set(size_t i, size_t level) {
    at_[i] = level;
    for (const GroupId group : candidates_[i].groups) {
      kept_[group] = levels_[i][level].kept;
    }
  }

  double value() const {
    double sum = 0;
    for (size_t i = 0; i < levels_.size(); ++i) sum += levels_[i][at_[i]].value;
    return sum;
  }

  double change(size_t i, size_t level) const {
    return model_.change(kept_, candidates_[i].groups, levels_[i][level].kept);
  }

  /// One knapsack around the widths as they are. Without a solution every group takes its cheapest.
  void move(double expected, double reach) {
    std::vector<std::vector<KnapsackOption>> items;
    std::vector<std::vector<size_t>> level_of;
    for (size_t i = 0; i < levels_.size(); ++i) {
      const int now = levels_[i][at_[i]].kept;
      const int most = std::max(1, static_cast<int>(reach * levels_[i].back().kept));
      items.emplace_back();
      level_of.emplace_back();
      for (size_t l = 0; l < levels_[i].size(); ++l) {
        const bool neighbour = l + 1 >= at_[i] && l <= at_[i] + 1;
        if (!neighbour && std::abs(levels_[i][l].kept - now) > most) continue;
        items.back().push_back({change(i, l), levels_[i][l].value});
        level_of.back().push_back(l);
      }
    }
    const auto chosen = best_options(items, expected - model_.seconds(kept_));
    for (size_t i = 0; i < items.size(); ++i) {
      const auto& options = items[i];
      const auto cheapest = std::ranges::min_element(options, {}, &KnapsackOption::cost);
      const size_t option = chosen ? static_cast<size_t>((*chosen)[i])
                                   : static_cast<size_t>(cheapest - options.begin());
      at_[i] = level_of[i][option];
    }
    for (size_t i = 0; i < levels_.size(); ++i) set(i, at_[i]);
  }

  /// A knapsack at the last step; its prediction error is subtracted from the next budget.
  void approach(double expected, double reach) {
    const std::vector<size_t> before = at_;
    const double was_value = value();
    const double was_seconds = model_.seconds(kept_);
    move(expected, reach);
    const double now = model_.seconds(kept_);
    const bool better =
        was_seconds > expected ? now < was_seconds : now <= expected && value() >= was_value;
    if (better) return;
    for (size_t i = 0; i < before.size(); ++i) set(i, before[i]);
  }

  /// Narrows by the cheapest loss per second until the time is kept.
  void make_feasible(double expected) {
    while (model_.seconds(kept_) > expected) {
      double best = -1;
      size_t who = 0;
      size_t where = 0;
      for (size_t i = 0; i < levels_.size(); ++i) {
        for (size_t l = 0; l < at_[i]; ++l) {
          const double saved = -change(i, l);
          if (saved <= 0) continue;
          const double lost = levels_[i][at_[i]].value - levels_[i][l].value;
          const double gain = saved / std::max(lost, 1e-12);
          if (gain <= best) continue;
          best = gain;
          who = i;
          where = l;
        }
      }
      if (best < 0) return;
      set(who, where);
    }
  }

  /// Widens a group, alone or for the narrowing of another, where that adds most.
  bool improve(double expected) {
    const double slack = expected - model_.seconds(kept_);
    if (slack < 0) return false;
    double best = 1e-9;
    size_t up = levels_.size();
    size_t up_to = 0;
    size_t down = levels_.size();
    size_t down_to = 0;
    for (size_t i = 0; i < levels_.size(); ++i) {
      for (size_t l = at_[i] + 1; l < levels_[i].size(); ++l) {
        const double gain = levels_[i][l].value - levels_[i][at_[i]].value;
        if (gain <= best) continue;
        if (change(i, l) <= slack) {
          best = gain;
          up = i;
          up_to = l;
          down = levels_.size();
          continue;
        }
        const auto [j, k] = best_partner(i, l, gain - best, slack);
        if (j == levels_.size()) continue;
        best = gain - (levels_[j][at_[j]].value - levels_[j][k].value);
        up = i;
        up_to = l;
        down = j;
        down_to = k;
      }
    }
    if (up == levels_.size()) return false;
    set(up, up_to);
    if (down < levels_.size()) set(down, down_to);
    return true;
  }

  /// The group, and its level, whose narrowing pays for widening i to l with the least loss, below
  /// `most`.
  std::pair<size_t, size_t> best_partner(size_t i, size_t l, double most, double slack) {
    std::pair<size_t, size_t> found = {levels_.size(), 0};
    const size_t was = at_[i];
    const double needed = change(i, l) - slack;
    set(i, l);
    for (size_t j = 0; j < levels_.size(); ++j) {
      if (j == i) continue;
      for (size_t k = at_[j]; k-- > 0;) {
        const double loss = levels_[j][at_[j]].value - levels_[j][k].value;
        if (loss >= most) break;
        if (-change(j, k) < needed) continue;
        most = loss;
        found = {j, k};
        break;
      }
    }
    set(i, was);
    return found;
  }

  const LatencyModel& model_;
  std::span<const WidthCandidate> candidates_;
  PerGroup<int> kept_;
  std::vector<std::vector<Level>> levels_;
  std::vector<size_t> at_;  ///< level of each candidate
};

}  // namespace

WidthChoice choose_widths(const LatencyModel& model, std::span<const WidthCandidate> candidates,
                          const PerGroup<int>& dense, double seconds) {
  return Chooser(model, candidates, dense).run(seconds);
}

}  // namespace parsimony
