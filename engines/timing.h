// What measured times say, and what they do not.
#pragma once

#include <span>

namespace parsimony::machine {

/// The middle of some times, in seconds, and how far they lie apart.
struct Summary {
  double median = 0;
  double low = 0;   ///< a quarter of the times lies below
  double high = 0;  ///< a quarter lies above
  int runs = 0;

  /// Distance of the quartiles, as a share of the median; 0 if that is 0.
  double spread() const { return median > 0 ? (high - low) / median : 0; }
};

/// Quantiles between two times are interpolated; all 0 if there is no time.
///
///     summary_of({1, 2, 3, 4, 9}) is {.median = 3, .low = 2, .high = 4, .runs = 5}
Summary summary_of(std::span<const double> times);

/// How many times as long the one takes as the other.
struct Ratio {
  double median = 1;
  double low = 0;   ///< the true median lies between these two in 95 of 100 measurements
  double high = 0;  ///< infinite where there are fewer than 6 pairs
  int pairs = 0;

  /// Is one of the two quicker, or can nobody tell? Differences below 1% count as none: the same
  /// model opened twice shows as much, for its memory lies elsewhere.
  bool differs() const;
};

/// Compares times that were measured in turn: `a[i]` just before or after `b[i]`, so that what else
/// the machine did slowed both. The interval is that of the order statistics of a[i] / b[i], which
/// assumes nothing about how times are distributed.
/// @source W. R. Thompson, "On confidence ranges for the median", 1936
Ratio compare(std::span<const double> a, std::span<const double> b);

}  // namespace parsimony::machine
