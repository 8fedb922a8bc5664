// Interleaved time measurements and their statistics.
#pragma once

#include <functional>
#include <span>
#include <vector>

namespace parsimony::machine {

/// Median and spread of some times, in seconds.
struct Summary {
  double median = 0;
  double low = 0;   ///< a quarter of the times lies below
  double high = 0;  ///< a quarter lies above
  int runs = 0;

  /// Interquartile range relative to the median; 0 if that is 0.
  double spread() const { return median > 0 ? (high - low) / median : 0; }
};

/// Returns median and quartiles, interpolated; all 0 without times.
///
///     summary_of({1, 2, 3, 4, 9}) is {.median = 3, .low = 2, .high = 4, .runs = 5}
Summary summary_of(std::span<const double> times);

/// The time of one relative to the other.
struct Ratio {
  double median = 1;
  double low = 0;   ///< bounds of the 95% confidence interval of the median
  double high = 0;  ///< infinite for fewer than 6 pairs
  int pairs = 0;

  /// Returns whether the difference is significant. Differences below 1% do not count: opening the
  /// same model twice shows as much, because of its memory layout.
  bool differs() const;
};

/// Compares interleaved times: `a[i]` is measured right before or after `b[i]`, so that noise
/// affects both. The confidence interval is that of the order statistics of a[i] / b[i], which
/// makes no assumption about the distribution.
/// @source W. R. Thompson, "On confidence ranges for the median", 1936
Ratio compare(std::span<const double> a, std::span<const double> b);

/// Seconds since an arbitrary moment.
using Clock = std::function<double()>;

double steady_seconds();

struct InterleavedOptions {
  double seconds = 3;  ///< limit for each, without warm-up; at least three rounds are run
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

struct RunTimes {
  std::vector<double> runs;    ///< seconds of every measured run
  std::vector<double> rounds;  ///< median of the runs of each round
};

/// Runs contestants in rounds A B A B …, about 5 ms each, so that noise affects all alike. Work
/// below 20 ms starts its round with an unmeasured run to warm the caches. With `options.runs`, one
/// run is measured per round.
std::vector<RunTimes> run_interleaved(std::span<const Work> contestants,
                                      const InterleavedOptions& options,
                                      const Clock& clock = steady_seconds);

}  // namespace parsimony::machine
