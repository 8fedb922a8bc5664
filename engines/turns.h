// Measures several pieces of work side by side: A B A B …, so that noise hits all of them alike.
#pragma once

#include <functional>
#include <span>
#include <vector>

namespace parsimony::machine {

/// Seconds since some moment.
using Clock = std::function<double()>;

double steady_seconds();

struct TurnOptions {
  double seconds = 3;  ///< that each may take, without its warm-up; three turns take place anyway
  int runs = 0;        ///< how many runs of each are counted; 0: what fits into `seconds`
  int warm_up = -1;    ///< runs before; -1: until they get no quicker
};

using Work = std::function<void()>;

/// Runs that are not counted: caches, thread pools and just-in-time compilers settle. They end when
/// the last five were no quicker than the five before, or a third of `options.seconds` is over, but
/// not before the third.
/// @returns how many there were
int warm_up(const Work& work, const TurnOptions& options, const Clock& clock = steady_seconds);

struct Samples {
  std::vector<double> runs;   ///< seconds of every run that is counted
  std::vector<double> turns;  ///< median of the runs of each turn
};

/// Lets each run for about 5 ms, then the next, over and over; all have the same number of turns.
/// Work below 20 ms begins its turn with a run that is not counted, for the others had the caches.
/// With `options.runs`, one run is counted in each turn.
std::vector<Samples> take_turns(std::span<const Work> contestants, const TurnOptions& options,
                                const Clock& clock = steady_seconds);

}  // namespace parsimony::machine
