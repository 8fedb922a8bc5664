// Statistics of measured times.
#pragma once

#include <span>

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

/// Quantiles are interpolated; all 0 without times.
///
///     summary_of({1, 2, 3, 4, 9}) is {.median = 3, .low = 2, .high = 4, .runs = 5}
Summary summary_of(std::span<const double> times);

/// The time of one relative to the other.
struct Ratio {
  double median = 1;
  double low = 0;   ///< bounds of the 95% confidence interval of the median
  double high = 0;  ///< infinite for fewer than 6 pairs
  int pairs = 0;

  /// Is the difference significant? Differences below 1% count as none: opening the same model
  /// twice shows as much, because of its memory layout.
  bool differs() const;
};

/// Compares interleaved times: `a[i]` is measured right before or after `b[i]`, so that noise
/// affects both. The confidence interval is that of the order statistics of a[i] / b[i], which
/// makes no assumption about the distribution.
/// @source W. R. Thompson, "On confidence ranges for the median", 1936
Ratio compare(std::span<const double> a, std::span<const double> b);

}  // namespace parsimony::machine
