#include "parsimony/cli/latency_meter.h"

#include <algorithm>
#include <ctime>
#include <exception>

#include "parsimony/engines/random_inputs.h"
#include "parsimony/engines/timing.h"

namespace parsimony::cli {
namespace {

constexpr double kPieceSeconds = 3e-3;
constexpr int kFewestRuns = 6;
constexpr int kMostRuns = 30;
/// Integers that are no word's or byte's may be refused: then flags are tried.
constexpr int64_t kRanges[] = {256, 2};

}  // namespace

double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

EngineMeter::Ready EngineMeter::make_ready(const Graph& graph, const std::vector<InputSpec>& specs,
                                           bool with_batch) const {
  Ready ready;
  ready.executable = open_(graph);
  for (const int64_t below : kRanges) {
    runtime::FeedOptions feed;
    feed.specs = specs;
    feed.below = below;
    if (with_batch && options_.batch != 1) feed.batch = options_.batch;
    try {
      ready.bound = ready.executable->bind(runtime::random_inputs(graph, feed));
      ready.bound->run();
      return ready;
    } catch (const std::exception&) {
      ready.bound.reset();
      if (below == kRanges[std::size(kRanges) - 1]) throw;
    }
  }
  return ready;
}

std::vector<std::optional<double>> EngineMeter::pieces(std::span<const Graph* const> graphs) {
  std::vector<std::optional<double>> seconds(graphs.size());
  std::vector<Ready> ready(graphs.size());
  std::vector<size_t> places;
  std::vector<machine::Work> works;
  double longest = 0;
  for (size_t g = 0; g < graphs.size(); ++g) {
    try {
      ready[g] = make_ready(*graphs[g], {}, false);
    } catch (const std::exception&) {
      continue;
    }
    BoundRun* bound = ready[g].bound.get();
    places.push_back(g);
    works.emplace_back([bound] { bound->run(); });
    bound->run();
    const double begin = clock_();
    bound->run();
    longest = std::max(longest, clock_() - begin);
  }
  machine::TurnOptions turns;
  const double fitting = kPieceSeconds / std::max(longest, kPieceSeconds / kMostRuns);
  turns.runs = std::clamp(static_cast<int>(fitting), kFewestRuns, kMostRuns);
  const auto samples = machine::take_turns(works, turns, clock_);
  for (size_t i = 0; i < places.size(); ++i) {
    seconds[places[i]] = machine::summary_of(samples[i].runs).low;
  }
  return seconds;
}

LatencyMeter::Pair EngineMeter::networks(const Graph& dense, const Graph& small) {
  const Ready first = make_ready(dense, options_.specs, true);
  const Ready second = make_ready(small, options_.specs, true);
  machine::TurnOptions turns;
  turns.seconds = options_.seconds;
  const std::vector<machine::Work> works = {[&] { first.bound->run(); },
                                            [&] { second.bound->run(); }};
  for (const machine::Work& work : works) machine::warm_up(work, turns, clock_);
  const auto samples = machine::take_turns(works, turns, clock_);
  Pair pair;
  pair.dense = machine::summary_of(samples[0].runs).median;
  pair.share = machine::compare(samples[1].turns, samples[0].turns).median;
  return pair;
}

}  // namespace parsimony::cli
