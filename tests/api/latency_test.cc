// Budgets of milliseconds with a meter that computes what it says: nothing here depends on a clock.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "parsimony/api/latency/measure.h"
#include "parsimony/api/prune.h"
#include "parsimony/base/errors.h"
#include "parsimony/base/words.h"
#include "parsimony/graph/model_editor.h"
#include "parsimony/pruners/latency/model.h"
#include "tests/api/measured_network.h"

namespace parsimony::test {
namespace {

/// A residual network: stem 16, a block of 32 inside, a classifier.
constexpr char kNetwork[] = R"(
    agraph (float[N, 3, 8, 8] x) => (float[N, 5] y) {
      a = Conv <pads = [1, 1, 1, 1]> (x, w1)
      b = Relu (a)
      c = Conv <pads = [1, 1, 1, 1]> (b, w2)
      d = Relu (c)
      e = Conv <pads = [1, 1, 1, 1]> (d, w3)
      f = Add (e, b)
      g = Relu (f)
      h = GlobalAveragePool (g)
      i = Flatten (h)
      y = Gemm <transB = 1> (i, w4)
    })";

struct Residual : MeasuredNetwork {
  Residual()
      : MeasuredNetwork(
            kNetwork,
            {{"w1", "16x3x3x3"}, {"w2", "32x16x3x3"}, {"w3", "16x32x3x3"}, {"w4", "5x16"}}) {}
};

/// Takes 1 us a node and 0.1 us for each 3x3 kernel, in blocks of four output channels.
class Meter final : public LatencyMeter {
 public:
  double factor = 1;  ///< that whole networks take longer by than their subgraphs
  int measured = 0;
  int networks_measured = 0;

  std::vector<std::optional<double>> subgraphs(std::span<const Graph* const> graphs) override {
    std::vector<std::optional<double>> seconds;
    for (const Graph* graph : graphs) seconds.emplace_back(seconds_of(*graph));
    measured += static_cast<int>(graphs.size());
    return seconds;
  }

  std::optional<Pair> networks(const Graph& dense, const Graph& small) override {
    ++networks_measured;
    return Pair{factor * whole(dense), whole(small) / whole(dense)};
  }

  static double seconds_of(const Graph& graph) {
    double micros = static_cast<double>(graph.nodes.size());
    for (const Weight& weight : graph.weights) {
      if (weight.dims.size() != 4) continue;
      micros += 0.1 * static_cast<double>((weight.dims[0] + 3) / 4 * 4 * weight.dims[1]);
    }
    return micros * 1e-6;
  }

  /// What no table knows: kernels that take turns have less of the caches.
  double whole(const Graph& graph) const { return std::pow(seconds_of(graph) * 1e6, 1.05) * 1e-6; }
};

ConfigList asking_for(double milliseconds) {
  return from_shorthand({.budget = "latency_ms=" + std::to_string(milliseconds)});
}

Pruning pruned(MeasuredNetwork& net, Meter& meter, double milliseconds,
               LatencyTables* tables = nullptr) {
  PruneRequest request;
  PruneServices services;
  services.meter = &meter;
  services.tables = tables;
  request.config = asking_for(milliseconds);
  return plan_pruning(net.graph, request, services);
}

TEST(Subgraphs, BeginWithLayersAndHoldWhatFollows) {
  Residual net;
  const Analysis analysis = analyse(net.graph);
  std::vector<std::string> found;
  for (const Subgraph& subgraph : subgraphs_of(net.graph, analysis.facts, analysis.coupling)) {
    found.push_back(subgraph.what + " (" + std::to_string(subgraph.dim_classes.size()) + ")");
  }
  EXPECT_EQ(found,
            (std::vector<std::string>{"Conv 16x3x3x3, Relu (1)", "Conv 32x16x3x3, Relu (2)",
                                      "Conv 16x32x3x3, Add, Relu, GlobalAveragePool, Flatten (2)",
                                      "Gemm 5x16 (1)"}));
}

TEST(Subgraphs, AreNetworksOfTheirOwn) {
  Residual net;
  const Analysis analysis = analyse(net.graph);
  const auto subgraphs = subgraphs_of(net.graph, analysis.facts, analysis.coupling);
  const StandaloneSubgraph subgraph =
      standalone_subgraph(net.graph, analysis.facts, subgraphs[2].nodes);
  ASSERT_EQ(subgraph.graph.inputs.size(), 2U) << "d and b";
  EXPECT_EQ(subgraph.graph.value(subgraph.graph.inputs[0]).name, "d");
  EXPECT_EQ(*subgraph.graph.value(subgraph.graph.inputs[0]).declared, (Shape{2, 32, 8, 8}));
  ASSERT_EQ(subgraph.graph.outputs.size(), 1U);
  const Facts facts = infer(subgraph.graph);
  EXPECT_EQ(*facts.shapes[subgraph.graph.outputs[0]], (Shape{2, 16}));
}

TEST(MeasurePieces, MeasuresEqualShapesOnceAndKnownOnesNever) {
  Residual net;
  const Analysis analysis = analyse(net.graph);
  const auto subgraphs = subgraphs_of(net.graph, analysis.facts, analysis.coupling);
  Meter meter;
  LatencyTables tables;
  const Coupled network{net.graph, analysis.probe, analysis.facts, analysis.coupling};
  EXPECT_EQ(measure_subgraphs(network, subgraphs, meter, tables).count, 4);
  const int before = meter.measured;
  EXPECT_EQ(measure_subgraphs(network, subgraphs, meter, tables).count, 0);
  EXPECT_EQ(meter.measured, before);
  const LatencyTable& conv = tables.at(subgraphs[1].key);
  EXPECT_TRUE(conv.is_sound());
  // The step behind 8, 16 and 24 output channels was looked for.
  const auto& outputs = conv.y.back() == 32 ? conv.y : conv.x;
  EXPECT_GE(outputs.size(), 8U);
  EXPECT_EQ(
      conv.at(16, 32),
      Meter::seconds_of(standalone_subgraph(net.graph, analysis.facts, subgraphs[1].nodes).graph));
}

TEST(LatencyBudget, IsMetByTheNetworkAsAWhole) {
  for (const double factor : {1.0, 1.7}) {
    for (const double share : {0.8, 0.6, 0.4}) {
      Residual net;
      Meter meter;
      meter.factor = factor;
      const double dense = factor * meter.whole(net.graph);
      const Pruning pruning = pruned(net, meter, share * dense * 1e3);
      ASSERT_TRUE(pruning.latency.has_value());
      const LatencyOutcome& outcome = *pruning.latency;
      EXPECT_DOUBLE_EQ(outcome.dense, dense);
      EXPECT_TRUE(outcome.holds(0.05)) << outcome.measured / outcome.requested;
      EXPECT_TRUE(pruning.notes.empty()) << pruning.notes[0];
      EXPECT_EQ(outcome.subgraphs, 4);
      EXPECT_EQ(meter.networks_measured, 1 + outcome.rounds);
    }
  }
}

TEST(LatencyBudget, MayBeAShareOfTheDenseNetworksTime) {
  Residual net;
  Meter meter;
  PruneRequest request = from_shorthand({.budget = "latency_ms=60%"});
  PruneServices services;
  services.meter = &meter;
  const Pruning pruning = plan_pruning(net.graph, request, services);
  EXPECT_DOUBLE_EQ(pruning.latency->requested, 0.6 * meter.whole(net.graph));
  EXPECT_TRUE(pruning.latency->holds(0.05));
}

TEST(LatencyBudget, LessThanAThousandthIsForced) {
  const auto pruned_to = [](double share, bool force) {
    Residual net;
    Meter meter;
    PruneRequest request;
    PruneServices services;
    services.meter = &meter;
    const std::string budget =
        "latency_ms=" + formatted("%.12g", 1e3 * share * meter.whole(net.graph));
    request.config = from_shorthand({.budget = budget, .force = force});
    return plan_pruning(net.graph, request, services);
  };
  EXPECT_THROW(pruned_to(1.0 / 1001, false), ConfigError);
  EXPECT_TRUE(pruned_to(1.0 / 999, false).latency.has_value());
  EXPECT_TRUE(pruned_to(1.0 / 1001, true).latency.has_value());
}

TEST(LatencyBudget, HoldsBesideOtherAmounts) {
  const auto pruned_to = [](const std::string& budget) {
    Residual net;
    Meter meter;
    PruneRequest request;
    PruneServices services;
    services.meter = &meter;
    request.config = from_shorthand({.budget = budget, .force = true});
    return plan_pruning(net.graph, request, services);
  };
  const Pruning by_time = pruned_to("latency_ms=60%");
  const Pruning slack = pruned_to("macs=95%,latency_ms=60%");
  EXPECT_EQ(slack.small.macs, by_time.small.macs) << "MACs leave more than milliseconds";
  EXPECT_FALSE(slack.latency->limited);
  const double share =
      0.8 * static_cast<double>(by_time.small.macs) / static_cast<double>(by_time.dense.macs);
  const Pruning tight = pruned_to("latency_ms=60%,macs=" + std::to_string(100 * share) + "%");
  EXPECT_LE(static_cast<double>(tight.small.macs), share * static_cast<double>(tight.dense.macs));
  EXPECT_GE(static_cast<double>(tight.small.macs),
            0.8 * share * static_cast<double>(tight.dense.macs));
  EXPECT_TRUE(tight.latency->limited);
  EXPECT_TRUE(tight.latency->holds(0.05));
  EXPECT_LT(tight.latency->measured, tight.latency->requested);
  EXPECT_TRUE(tight.notes.empty()) << tight.notes[0];
  const Pruning impossible = pruned_to("latency_ms=60%,params=1");
  ASSERT_EQ(impossible.notes.size(), 1U);
  EXPECT_EQ(impossible.notes[0].find("asked for at most 1 parameters: no fewer than"), 0U)
      << impossible.notes[0];
}

TEST(Rounding, FollowsTheStepsOfATableThatIsNamed) {
  Residual net;
  const Analysis analysis = analyse(net.graph);
  Meter meter;
  LatencyTables tables;
  Probe probe = analysis.probe;
  probe.first = 1;
  const Facts facts = infer(net.graph, probe);
  measure_subgraphs({net.graph, probe, facts, analysis.coupling},
                    subgraphs_of(net.graph, facts, analysis.coupling), meter, tables);
  PruneRequest request;
  PruneServices services;
  services.tables = &tables;
  request.latency.table = "board.json";
  request.config = from_shorthand({.ratio = 0.4, .target = "x86-avx512"});
  const Pruning pruning = plan_pruning(net.graph, request, services);
  std::set<int64_t> kept;
  for (const GroupId g : pruning.analysis.coupling.groups.ids()) {
    kept.insert(pruning.allocation.masks.kept(g));
  }
  EXPECT_TRUE(kept.contains(20)) << "of 32, in blocks of four";
  ASSERT_EQ(pruning.notes.size(), 1U);
  EXPECT_EQ(pruning.notes[0],
            "widths of 2 of 2 groups are rounded to the latency steps in board.json");
}

/// Channels of the stem, which the residual sum ties to the block's result, and of the block
/// inside.
std::pair<int64_t, int64_t> widths_of(const Graph& graph) {
  const auto outputs = [&](const char* name) {
    const auto is = [&](const Weight& weight) { return weight.name == name; };
    return std::find_if(graph.weights.begin(), graph.weights.end(), is)->dims[0];
  };
  return {outputs("w1"), outputs("w2")};
}

TEST(LatencyBudget, TakesFromWhatTheOutputsDoNotNeed) {
  for (const bool stem_matters : {true, false}) {
    Residual net;
    Meter meter;
    PruneRequest request = from_shorthand({.budget = "latency_ms=60%"});
    PruneServices services;
    services.meter = &meter;
    int asked = 0;
    services.r_squared = [&](const Graph& small) {
      const auto [stem, inside] = widths_of(small);
      EXPECT_TRUE(stem == 16 || inside == 32) << "one group alone is narrow";
      ++asked;
      const double of_stem = static_cast<double>(stem) / 16;
      const double of_inside = static_cast<double>(inside) / 32;
      const auto importance = [](double vital, double other) {
        return std::pow(vital, 4) * (0.99 + 0.01 * other);
      };
      return stem_matters ? importance(of_stem, of_inside) : importance(of_inside, of_stem);
    };
    const Pruning pruning = plan_pruning(net.graph, request, services);
    EXPECT_EQ(asked, 19) << "the whole, and nine widths of two groups";
    EXPECT_LE(pruning.latency->measured, 1.05 * pruning.latency->requested);
    GraphEditor small(net.graph, GraphEditor::Elements::kAll);
    replay(pruning.plan, small);
    const auto [stem, inside] = widths_of(small.graph());
    EXPECT_EQ(stem == 16, stem_matters) << stem << ", " << inside;
    EXPECT_EQ(inside == 32, !stem_matters) << stem << ", " << inside;
  }
}

TEST(Outputs, MeetABudgetOfMultiplyAddsToTheLastChannel) {
  for (const bool stem_matters : {true, false}) {
    Residual net;
    PruneRequest request = from_shorthand({.scope = "outputs", .budget = "macs=60%"});
    PruneServices services;
    services.r_squared = [&](const Graph& small) {
      const auto [stem, inside] = widths_of(small);
      return stem_matters ? static_cast<double>(stem) / 16 : static_cast<double>(inside) / 32;
    };
    const Pruning pruning = plan_pruning(net.graph, request, services);
    EXPECT_LE(pruning.small.macs, pruning.dense.macs * 6 / 10);
    // A channel of the block inside costs 64 · 9 · 16 twice.
    EXPECT_GT(pruning.small.macs, pruning.dense.macs * 6 / 10 - 2 * 64 * 9 * 32 - 64 * 27);
    GraphEditor small(net.graph, GraphEditor::Elements::kAll);
    replay(pruning.plan, small);
    const auto [stem, inside] = widths_of(small.graph());
    EXPECT_EQ(stem == 16, stem_matters) << stem << ", " << inside;
  }
}

TEST(LatencyBudget, GoesByTheScoresWhereOutputsSayNothing) {
  Residual net;
  Meter meter;
  const Pruning by_scores = pruned(net, meter, 0.6e3 * meter.whole(net.graph));
  Residual again;
  PruneRequest request;
  PruneServices services;
  services.meter = &meter;
  services.r_squared = [](const Graph&) { return 0.0; };
  request.config = asking_for(0.6e3 * meter.whole(net.graph));
  const Pruning found = plan_pruning(again.graph, request, services);
  EXPECT_EQ(found.plan, by_scores.plan);
}

TEST(LatencyBudget, UsesTheTablesOfFormerRuns) {
  Residual net;
  Meter meter;
  LatencyTables tables;
  const double requested = 0.6e3 * meter.whole(net.graph);
  const Pruning first = pruned(net, meter, requested, &tables);
  EXPECT_EQ(first.latency->fresh, 4);
  EXPECT_EQ(tables.size(), 4U);
  Residual again;
  const Pruning second = pruned(again, meter, requested, &tables);
  EXPECT_EQ(second.latency->fresh, 0);
  EXPECT_EQ(second.plan, first.plan);
}

TEST(LatencyBudget, SaysHowFarItGets) {
  Residual net;
  Meter meter;
  const Pruning pruning = pruned(net, meter, 2e-4);
  ASSERT_EQ(pruning.notes.size(), 1U);
  EXPECT_TRUE(
      pruning.notes[0].starts_with("requested 0.0002 ms: the closest network found takes 0.0"))
      << pruning.notes[0];
  const int kept =
      std::accumulate(pruning.plan.groups.begin(), pruning.plan.groups.end(), 0,
                      [](int sum, const PlanGroup& group) { return sum + group.kept; });
  EXPECT_EQ(kept, 2) << "one channel of either group";
}

TEST(Rounding, SaysWhatItCostAndBrought) {
  Residual net;
  Meter meter;
  PruneRequest request = from_shorthand({.ratio = 0.4, .target = "x86-avx2"});
  PruneServices services;
  services.meter = &meter;
  // 6 of 16 and 13 of 32 would go; 16 of 16 and 24 of 32 stay.
  const Pruning pruning = plan_pruning(net.graph, request, services);
  ASSERT_TRUE(pruning.rounding);
  const RoundingOutcome& rounding = *pruning.rounding;
  EXPECT_EQ(rounding.target, Target::kX86Avx2);
  EXPECT_GT(rounding.score, rounding.score_without);
  EXPECT_LT(rounding.macs_without, pruning.small.macs);
  ASSERT_TRUE(rounding.time);
  EXPECT_GT(*rounding.time, 1);
  for (const PlanGroup& group : pruning.plan.groups) EXPECT_EQ(group.kept % 8, 0);
  Residual again;
  EXPECT_FALSE(plan_pruning(again.graph, from_shorthand({.ratio = 0.4})).rounding);
}

TEST(LatencyBudget, NeedsAMeter) {
  Residual net;
  EXPECT_THROW(plan_pruning(net.graph, asking_for(1)), UnsupportedError);
}

}  // namespace
}  // namespace parsimony::test
