// Budgets of a whole network, over random networks: never exceeded, and no channel could come back.
#include "parsimony/pruners/budget.h"

#include <gtest/gtest.h>

#include <cmath>

#include "parsimony/masks/cost.h"
#include "parsimony/pruners/allocate.h"
#include "tests/properties/random_network.h"
#include "tests/properties/workbench.h"

namespace parsimony::test {
namespace {

struct Order {
  Scope scope = Scope::kLocal;
  Budget budget = Budget::kParams;
  double left = 0.5;  ///< of the dense network
  bool as_amount = true;
  int round_to = 1;
  int keep_at_least = 1;
};

class Trial {
 public:
  Trial(const Workbench& bench, const Order& order)
      : bench_(bench), order_(order), cost_(bench.graph(), bench.facts(), bench.coupling()) {
    most_ = std::floor(of(cost_.dense()) * order.left + 1e-6);
    settings_.force = true;  // the narrowest networks are the bounds
    Request& request = settings_.requests.emplace_back();
    request.scope = order.scope;
    request.budget = order.budget;
    request.round_to = order.round_to;
    request.keep_at_least = order.keep_at_least;
    if (order.as_amount) {
      request.amount = most_;
    } else {
      request.ratio = 1 - order.left;
    }
    settings_.layers.resize(bench.graph().nodes.size(), {LayerSetting::State::kPruned, 0, 0});
  }

  /// What is wrong; empty if nothing is.
  std::string fault() const {
    const Allocation found =
        allocate(bench_.graph(), bench_.facts(), bench_.coupling(), settings_, {});
    const double cost = of(cost_.under(found.masks));
    const bool can = of(cost_.under(narrowest())) <= most_;
    if (!can) {
      return found.conflicts.empty() ? "does not say that the budget cannot be met" : "";
    }
    if (cost > most_) return std::to_string(cost) + " is above " + std::to_string(most_);
    return room(found.masks);
  }

 private:
  double of(const Cost& cost) const {
    return static_cast<double>(order_.budget == Budget::kMacs ? cost.macs : cost.params);
  }

  /// As little as the bounds allow. Which channels stay does not matter but for dimensions that
  /// would be empty.
  AxisMasks narrowest() const {
    Settings all = settings_;
    all.requests[0].amount.reset();
    all.requests[0].scope = Scope::kLocal;
    all.requests[0].budget = Budget::kChannels;
    all.requests[0].ratio = 1 - 1e-7;
    return allocate(bench_.graph(), bench_.facts(), bench_.coupling(), all, {}).masks;
  }

  /// Removed channels, one or as many as round_to asks for, that would fit.
  std::string room(const AxisMasks& masks) const {
    for (const GroupId g : masks.keep.ids()) {
      const int size = bench_.coupling().groups[g].size;
      const int removed = size - masks.kept(g);
      const int back = removed - limits_of(settings_.requests[0], size).fewer(removed);
      std::vector<size_t> channels;
      for (size_t c = 0; c < masks.keep[g].size(); ++c) {
        if (masks.keep[g][c] == 0) channels.push_back(c);
      }
      for (size_t first = 0; back > 0 && first + static_cast<size_t>(back) <= channels.size();
           ++first) {
        AxisMasks more = masks;
        for (size_t i = 0; i < static_cast<size_t>(back); ++i)
          more.keep[g][channels[first + i]] = 1;
        if (of(cost_.under(more)) <= most_) {
          return bench_.coupling().groups[g].id + " could have channel " +
                 std::to_string(channels[first]);
        }
      }
    }
    return "";
  }

  const Workbench& bench_;
  const Order& order_;
  CostModel cost_;
  double most_ = 0;
  Settings settings_;
};

TEST(Budgets, OfRandomNetworksAreMetToTheLastChannel) {
  int pruned = 0;
  for (unsigned seed = 0; seed < 60; ++seed) {
    const Workbench bench(random_network(seed));
    if (bench.coupling().groups.empty()) continue;
    ++pruned;
    for (const Scope scope : {Scope::kLocal, Scope::kGlobal, Scope::kIsomorphic}) {
      for (const Budget budget : {Budget::kParams, Budget::kMacs}) {
        for (const double left : {0.3, 0.62, 0.9}) {
          for (const bool as_amount : {true, false}) {
            const Order order{scope, budget, left, as_amount, 1, seed % 3 == 0 ? 2 : 1};
            EXPECT_EQ(Trial(bench, order).fault(), "")
                << "network " << seed << ", scope " << static_cast<int>(scope) << ", budget "
                << static_cast<int>(budget) << ", " << left << (as_amount ? " amount" : " ratio");
          }
        }
      }
    }
  }
  EXPECT_GT(pruned, 40);
}

TEST(Budgets, OfRandomNetworksKeepRoundedWidths) {
  for (unsigned seed = 0; seed < 30; ++seed) {
    const Workbench bench(random_network(seed));
    if (bench.coupling().groups.empty()) continue;
    for (const Scope scope : {Scope::kLocal, Scope::kGlobal, Scope::kIsomorphic}) {
      const Order order{scope, Budget::kMacs, 0.7, true, 4, 1};
      EXPECT_EQ(Trial(bench, order).fault(), "") << "network " << seed;
    }
  }
}

}  // namespace
}  // namespace parsimony::test
