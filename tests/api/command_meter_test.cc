// A stand-in for a board: a command with a known cost, noise, and failures.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "parsimony/api/latency/profiler.h"
#include "parsimony/api/prune.h"
#include "parsimony/base/errors.h"
#include "parsimony/base/files.h"
#include "parsimony/onnx_io/graph_file.h"
#include "tests/api/measured_network.h"

namespace parsimony::test {
namespace {

/// Three convolutions of 64 channels.
constexpr char kChain[] = R"(
    agraph (float[N, 3, 8, 8] x) => (float[N, 5] y) {
      a = Conv <pads = [1, 1, 1, 1]> (x, w1)
      b = Relu (a)
      c = Conv <pads = [1, 1, 1, 1]> (b, w2)
      d = Relu (c)
      e = Conv <pads = [1, 1, 1, 1]> (d, w3)
      f = GlobalAveragePool (e)
      g = Flatten (f)
      y = Gemm <transB = 1> (g, w4)
    })";

struct Wide : MeasuredNetwork {
  Wide()
      : MeasuredNetwork(
            kChain,
            {{"w1", "64x3x3x3"}, {"w2", "64x64x3x3"}, {"w3", "64x64x3x3"}, {"w4", "5x64"}}) {
    write_file(log(), "");
  }
  std::string log() const { return folder / "log"; }
};

/// The cost of a layer here: its weights.
class ByWeights final : public LatencyMeter {
 public:
  std::vector<std::optional<double>> subgraphs(std::span<const Graph* const> graphs) override {
    std::vector<std::optional<double>> seconds;
    for (const Graph* graph : graphs) {
      double count = 100;
      for (const Weight& weight : graph->weights) count += static_cast<double>(weight.count());
      seconds.emplace_back(1e-8 * count);
    }
    return seconds;
  }
  std::optional<Pair> networks(const Graph&, const Graph&) override { return std::nullopt; }
};

/// Prints 1 ms and 40 ns a byte of the file, 5 % more or less (uniformly by ±8.66 %), every run
/// other numbers; one run of `failing` fails. It logs a line for each.
std::string board(const std::string& log, int seed, int failing) {
  return "n=$(wc -l < " + log + "); echo run >> " + log + "; if [ $((n % " +
         std::to_string(failing) +
         ")) = 3 ]; then exit 1; fi; wc -c < {model} | awk -v seed=" + std::to_string(seed) +
         " -v n=$n 'BEGIN { srand(1000 * seed + n); rand() } { print (1 + $1 * 4e-5) * (1 + "
         "0.1732 * (rand() - 0.5)) }'";
}

TEST(CommandMeter, MeetsABudgetOnANoisyBoardThatSometimesFails) {
  int met = 0;
  constexpr int kBoards = 8;
  for (int seed = 1; seed <= kBoards; ++seed) {
    Wide net;
    ByWeights layers;
    const LatencyCommand command{.line = board(net.log(), seed, 9), .pause = 0};
    CommandMeter meter(command, &layers);
    PruneRequest request = from_shorthand({.budget = "latency_ms=8"});
    PruneServices services;
    services.meter = &meter;
    request.latency.command = command;
    constexpr double kExpected = 8;  // of 13.1 ms
    const Pruning pruning = plan_pruning(net.graph, request, services);
    const std::string log = read_file(net.log());
    const auto runs = std::count(log.begin(), log.end(), '\n');
    EXPECT_LE(runs - runs / 9 - 1, 40) << "without those that failed";
    // What the board would say without noise; the file lacks little besides weights.
    const double saved = 4.0 * static_cast<double>(pruning.dense.params - pruning.small.params);
    const double whole = static_cast<double>(onnx_io::to_onnx(net.graph).size());
    const double found = 1 + (whole - saved) * 4e-5;
    EXPECT_NEAR(found, kExpected, 0.05 * kExpected) << seed;
    if (std::abs(found / kExpected - 1) <= 0.03) ++met;
    EXPECT_GT(pruning.latency->noise, 0);
    EXPECT_LT(pruning.latency->noise, 0.02);
  }
  EXPECT_GE(met, kBoards - 1);
}

TEST(CommandMeter, EndsWithWhatItHasIfTheBoardDies) {
  Wide net;
  ByWeights layers;
  // Nine runs of the dense network, three of the first small one.
  const LatencyCommand command{
      .line = "echo run >> " + (net.log()) + "; test $(wc -l < " + (net.log()) +
              ") -le 12 && wc -c < {model} | awk '{ print $1 * $1 / 1e6 }'",
      .retries = 1,
      .pause = 0};
  CommandMeter meter(command, &layers);
  PruneRequest request = from_shorthand({.budget = "latency_ms=40000"});
  PruneServices services;
  services.meter = &meter;
  request.latency.command = command;
  const Pruning pruning = plan_pruning(net.graph, request, services);
  EXPECT_EQ(pruning.latency->rounds, 1);
  ASSERT_FALSE(pruning.notes.empty());
  EXPECT_NE(pruning.notes[0].find("--latency-command: echo run"), std::string::npos)
      << pruning.notes[0];
  EXPECT_FALSE(pruning.plan.empty());
}

TEST(CommandMeter, SaysWhatACommandPrintedThatGivesNoTime) {
  const auto message = [](const std::string& line) {
    try {
      seconds_by({.line = line, .retries = 0}, "a.onnx");
    } catch (const ModelError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(seconds_by({.line = "echo {model}: 2.5 ms"}, "a.onnx"), 2.5e-3);
  EXPECT_EQ(message("echo slow {model}"),
            "--latency-command: echo slow 'a.onnx': its output contains no number above 0; it "
            "printed: slow "
            "a.onnx\n");
  EXPECT_EQ(message("false {model}"),
            "--latency-command: false 'a.onnx': exit code 1, without any output");
}

TEST(CommandMeter, IsNotMisledByOutliers) {
  Wide net;
  // Every third run is ten times as slow.
  CommandMeter meter({.line = "echo run >> " + (net.log()) + "; n=$(wc -l < " + (net.log()) +
                              "); : {model}; if [ $((n % 3)) = 0 ]; then echo 50; else echo 5; fi"},
                     nullptr);
  const auto pair = meter.networks(net.graph, net.graph);
  ASSERT_TRUE(pair);
  EXPECT_DOUBLE_EQ(pair->dense, 5e-3);
}

}  // namespace
}  // namespace parsimony::test
