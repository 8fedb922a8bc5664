#include "parsimony/api/latency/engine_meter.h"

#include <algorithm>
#include <ctime>
#include <exception>

#include "parsimony/engines/random_inputs.h"
#include "parsimony/engines/timing.h"

namespace parsimony {
namespace {

constexpr double kSubgraphSeconds = 3e-3;
constexpr int kFewestRuns = 6;
constexpr int kMostRuns = 30;

}  // namespace

double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

std::unique_ptr<Network> EngineMeter::make_ready(const Graph& graph,
                                                 const std::vector<InputSpec>& specs,
                                                 bool with_batch) const {
  std::unique_ptr<Network> network = engine_.open(graph);
  for (const int64_t below : runtime::kIntegerRanges) {
    runtime::FeedOptions feed;
    feed.specs = specs;
    feed.below = below;
    if (with_batch && options_.batch != 1) feed.batch = options_.batch;
    try {
      network->bind(runtime::random_inputs(graph, feed));
      network->compute();
      break;
    } catch (const std::exception&) {
      if (below == runtime::kIntegerRanges.back()) throw;
    }
  }
  return network;
}

std::vector<std::optional<double>> EngineMeter::subgraphs(std::span<const Graph* const> graphs) {
  std::vector<std::optional<double>> seconds(graphs.size());
  std::vector<std::unique_ptr<Network>> ready(graphs.size());
  std::vector<size_t> places;
  std::vector<machine::Work> works;
  double longest = 0;
  for (size_t g = 0; g < graphs.size(); ++g) {
    try {
      ready[g] = make_ready(*graphs[g], {}, false);
    } catch (const std::exception&) {
      continue;
    }
    Network* network = ready[g].get();
    places.push_back(g);
    works.emplace_back([network] { network->compute(); });
    network->compute();
    const double begin = clock_();
    network->compute();
    longest = std::max(longest, clock_() - begin);
  }
  machine::InterleavedOptions rounds;
  const double fitting = kSubgraphSeconds / std::max(longest, kSubgraphSeconds / kMostRuns);
  rounds.runs = std::clamp(static_cast<int>(fitting), kFewestRuns, kMostRuns);
  const auto samples = machine::run_interleaved(works, rounds, clock_);
  for (size_t i = 0; i < places.size(); ++i) {
    seconds[places[i]] = machine::summary_of(samples[i].runs).low;
  }
  return seconds;
}

std::optional<LatencyMeter::Pair> EngineMeter::networks(const Graph& dense, const Graph& small) {
  const std::unique_ptr<Network> first = make_ready(dense, options_.specs, true);
  const std::unique_ptr<Network> second = make_ready(small, options_.specs, true);
  machine::InterleavedOptions rounds;
  rounds.seconds = options_.seconds;
  const std::vector<machine::Work> works = {[&] { first->compute(); }, [&] { second->compute(); }};
  for (const machine::Work& work : works) machine::warm_up(work, rounds, clock_);
  const auto samples = machine::run_interleaved(works, rounds, clock_);
  Pair pair;
  pair.dense = machine::summary_of(samples[0].runs).median;
  pair.share = machine::compare(samples[1].rounds, samples[0].rounds).median;
  return pair;
}

}  // namespace parsimony
