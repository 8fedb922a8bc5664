// Interleaved benchmarking: A B A B …, so that noise affects all contestants alike.
#pragma once

#include <functional>
#include <span>
#include <vector>

namespace parsimony::machine {

/// Seconds since an arbitrary moment.
using Clock = std::function<double()>;

double steady_seconds();

struct InterleavedOptions {
  double seconds = 3;  ///< that each may take, without warm-up; at least three rounds are run
  int runs = 0;        ///< measured runs of each; 0: as many as fit into `seconds`
  int warm_up = -1;    ///< unmeasured runs before; -1: until the times settle
};

using Work = std::function<void()>;

/// Runs that are not measured, so that caches, thread pools and just-in-time compilers settle. Ends
/// when the last five runs were no faster than the five before, or after a third of
/// `options.seconds`, but not before the third run.
/// @returns the number of runs
int warm_up(const Work& work, const InterleavedOptions& options,
            const Clock& clock = steady_seconds);

struct Samples {
  std::vector<double> runs;    ///< seconds of every measured run
  std::vector<double> rounds;  ///< median of the runs of each round
};

/// Runs each for about 5 ms, then the next, in rounds. Work below 20 ms starts its round with an
/// unmeasured run to warm the caches. With `options.runs`, one run is measured per round.
std::vector<Samples> run_interleaved(std::span<const Work> contestants,
                                     const InterleavedOptions& options,
                                     const Clock& clock = steady_seconds);

}  // namespace parsimony::machine
