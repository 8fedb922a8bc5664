// Budgets of whole networks.
#include <gtest/gtest.h>

#include <map>

#include "parsimony/api/prune.h"
#include "tests/support/model.h"

namespace parsimony {
namespace {

/// Of two layers with eight channels, those of the first cost 21 times as much: what they lose may
/// be a few times larger.
TEST(NetworkBudgets, DivideLossesByWhatAChannelCosts) {
  test::TextModel model(R"(
      net (float[1,3,16,16] x) => (float[1,2,4,4] y)
      {
        a = Conv<pads=[1,1,1,1]>(x, W1)
        b = Conv<strides=[4,4]>(a, W2)
        y = Conv(b, W3)
      })",
                        {{"W1", "8x3x3x3"}, {"W2", "8x8x1x1"}, {"W3", "2x8x1x1"}});
  PruneOptions options;
  options.measure = [](const Graph&, const Facts&, const Coupling& coupling, const Needs&) {
    Statistics statistics;
    statistics.samples = 1;
    for (const Group& group : coupling.groups) {
      statistics.groups.push_back(group.id);
      const double loss = statistics.groups.size() == 1 ? 3 : 1;
      statistics.channels[Measure::kFisher].push_back(std::vector<double>(group.size, loss));
    }
    return statistics;
  };
  const auto kept = [&](const char* budget) {
    const Shorthand wanted{
        .criterion = "fisher", .ratio = 0.2, .scope = "global", .budget = budget};
    const Plan plan = plan_pruning(model.graph(), from_shorthand(wanted), options).plan;
    std::map<std::string, int> sizes;
    for (const PlanGroup& group : plan.groups) sizes[group.id] = group.kept;
    return sizes;
  };
  EXPECT_EQ(kept("macs"), (std::map<std::string, int>{{"g0", 6}}));
  EXPECT_EQ(kept("channels"), (std::map<std::string, int>{{"g1", 5}})) << "all cost the same";
}

}  // namespace
}  // namespace parsimony
