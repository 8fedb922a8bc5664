#include "parsimony/pruners/latency/widths.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "tests/pruners/network.h"

namespace parsimony {
namespace {

/// A chain of layers, layer i between the lines i-1 and i; each takes time(in, out).
struct Chain {
  Coupling coupling;
  std::vector<Subgraph> subgraphs;
  LatencyTables tables;
  std::vector<WidthCandidate> candidates;
  PerGroup<int> dense;

  using Time = std::function<double(int in, int out)>;

  Chain(const std::vector<std::vector<double>>& scores, const Time& time) {
    coupling.dim_class_begin = {0};
    int before = 1;
    for (size_t g = 0; g < scores.size(); ++g) {
      const auto size = static_cast<int>(scores[g].size());
      const GroupId id =
          coupling.groups.push_back(test::group_of({}, size, "g" + std::to_string(g)));
      for (int c = 0; c < size; ++c) coupling.element_channel.push_back({id, c});
      coupling.dim_class_begin.push_back(static_cast<int64_t>(coupling.element_channel.size()));
      Request request;
      candidates.push_back(
          {{id}, {limits_of(request, size), scores[g], removal_order(scores[g]), 1, 0, 0}, 1, {}});
      candidates.back().curve = score_curve(candidates.back().candidate);
      dense.push_back(size);
      add(static_cast<int>(g), before, size, time);
      before = size;
    }
  }

  LatencyModel model() const { return {coupling, subgraphs, tables}; }

  double value(const PerGroup<int>& kept) const {
    double sum = 0;
    for (const GroupId g : kept.ids()) {
      std::vector<double> scores = candidates[g.index()].candidate.score;
      std::sort(scores.rbegin(), scores.rend());
      double of_kept = 0;
      double all = 0;
      for (size_t c = 0; c < scores.size(); ++c) {
        all += scores[c];
        if (static_cast<int>(c) < kept[g]) of_kept += scores[c];
      }
      sum += std::log(of_kept / all);
    }
    return sum;
  }

  /// The highest importance of any widths within the time.
  double best(double seconds) const {
    const LatencyModel sums = model();
    PerGroup<int> kept(dense.size(), 1);
    double most = -1e9;
    while (true) {
      if (sums.seconds(kept) <= seconds) most = std::max(most, value(kept));
      GroupId g(0);
      for (; kept.has(g) && ++kept[g] > dense[g]; ++g) kept[g] = 1;
      if (!kept.has(g)) return most;
    }
  }

 private:
  void add(int g, int in, int out, const Time& time) {
    Subgraph subgraph{{NodeId(g)}, {}, "k" + std::to_string(g), ""};
    LatencyTable table;
    table.seconds.clear();
    table.x.clear();
    table.y.clear();
    if (g > 0) subgraph.dim_classes.push_back(DimClassId(g - 1));
    subgraph.dim_classes.push_back(DimClassId(g));
    for (int x = 1; x <= (g > 0 ? in : out); ++x) table.x.push_back(x);
    table.y = {1};
    for (int y = 2; g > 0 && y <= out; ++y) table.y.push_back(y);
    for (const int x : table.x) {
      for (const int y : table.y) table.seconds.push_back(g > 0 ? time(x, y) : time(1, x));
    }
    subgraphs.push_back(subgraph);
    tables[subgraph.key] = table;
  }
};

double product(int in, int out) { return 1e-3 * (5 + in * out); }

/// As a kernel does that computes in blocks of four channels.
double blocks(int in, int out) { return 1e-3 * (5 + in * ((out + 3) / 4 * 4)); }

TEST(LatencyModel, AddsTheTablesOfItsPieces) {
  const Chain net({{1, 1}, {1, 1, 1}}, product);
  const LatencyModel model = net.model();
  EXPECT_NEAR(model.seconds(PerGroup<int>{2, 3}), 1e-3 * (5 + 2 + 5 + 6), 1e-12);
  EXPECT_NEAR(model.seconds(PerGroup<int>{1, 3}), 1e-3 * (5 + 1 + 5 + 3), 1e-12);
  EXPECT_NEAR(model.change(PerGroup<int>{2, 3}, std::vector<GroupId>{GroupId(0)}, 1), -4e-3, 1e-12);
  EXPECT_NEAR(model.change(PerGroup<int>{2, 3}, std::vector<GroupId>{GroupId(1)}, 1), -4e-3, 1e-12);
}

TEST(LatencyModel, CountsALayerBetweenTiedGroupsOnce) {
  const Chain net({{1, 1, 1}, {1, 1, 1}}, product);
  const LatencyModel model = net.model();
  const PerGroup<int> before = {3, 3};
  EXPECT_NEAR(model.change(before, std::vector<GroupId>{GroupId(0), GroupId(1)}, 1),
              model.seconds(PerGroup<int>{1, 1}) - model.seconds(before), 1e-12);
}

TEST(LatencyModel, CountsEqualPiecesEachAndUnknownOnesNot) {
  Chain net({{1, 1}}, product);
  net.subgraphs.push_back(net.subgraphs[0]);
  net.subgraphs.push_back({{NodeId(1)}, {DimClassId(0)}, "unknown", ""});
  EXPECT_NEAR(net.model().seconds(PerGroup<int>{2}), 2 * 7e-3, 1e-12);
}

TEST(ChooseWidths, FollowsSharesThatWereMeasured) {
  Chain net({std::vector<double>(8, 1), std::vector<double>(8, 1)},
            [](int, int out) { return 1e-3 * out; });
  const std::vector<std::pair<int, double>> bears_much = {{2, 0.99}};
  net.candidates[1].curve = interpolated_curve(8, bears_much);
  EXPECT_EQ(choose_widths(net.model(), net.candidates, net.dense, 10e-3).kept,
            (PerGroup<int>{8, 2}));
}

TEST(ChooseWidths, KeepsTheTimeAndComesNearTheBest) {
  const std::vector<std::vector<double>> scores = {
      {9, 1, 1, 1, 1, 1}, {3, 3, 3, 3, 3, 3, 3, 3}, {8, 7, 6, 5, 4, 3, 2, 1}, {1, 5, 1, 5}};
  for (const auto& time : {product, blocks}) {
    const Chain net(scores, time);
    const LatencyModel model = net.model();
    const double whole = model.seconds(net.dense);
    for (const double share : {0.9, 0.7, 0.5, 0.35}) {
      const double budget = share * whole;
      const WidthChoice choice = choose_widths(model, net.candidates, net.dense, budget);
      EXPECT_TRUE(choice.feasible) << share;
      EXPECT_LE(choice.seconds, budget);
      EXPECT_NEAR(choice.seconds, model.seconds(choice.kept), 1e-12);
      EXPECT_NEAR(choice.value, net.value(choice.kept), 1e-9);
      // Logarithms: a loss of 0.05 is one twentieth of what one layer passes on.
      EXPECT_GT(choice.value, net.best(budget) - 0.05) << share;
    }
  }
}

TEST(ChooseWidths, FindsTheStepsOfAKernel) {
  const Chain net({std::vector<double>(16, 1), std::vector<double>(16, 1)},
                  [](int, int out) { return 1e-3 * ((out + 7) / 8); });
  const WidthChoice choice = choose_widths(net.model(), net.candidates, net.dense, 2.5e-3);
  // Two of the layers' blocks fit; fewer than eight channels would save nothing.
  EXPECT_EQ(choice.kept, (PerGroup<int>{8, 8}));
}

TEST(ChooseWidths, HoldsTheLimitsOfAGroup) {
  Chain net({std::vector<double>(8, 1), std::vector<double>(8, 1)}, product);
  net.candidates[0].candidate.limits.most = 2;
  net.candidates[1].candidate.limits.round_to = 4;
  const WidthChoice choice = choose_widths(net.model(), net.candidates, net.dense, 1e-9);
  EXPECT_FALSE(choice.feasible);
  EXPECT_EQ(choice.kept, (PerGroup<int>{6, 4}));
}

TEST(ChooseWidths, LeavesANetworkWholeThatIsQuickEnough) {
  const Chain net({{1, 2, 3}, {1, 2}}, product);
  EXPECT_EQ(choose_widths(net.model(), net.candidates, net.dense, 1).kept, net.dense);
}

}  // namespace
}  // namespace parsimony
