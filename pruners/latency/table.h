// The time of a subgraph as a function of the widths of its axes, measured at some of them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace parsimony {

/// Times over a grid: `seconds[i · y.size() + j]` for widths x[i] and y[j], both ascending. A
/// subgraph with one axis has y = {1}, one without has x = {1} too.
struct LatencyTable {
  std::string what;  ///< for display: "Conv 16x16x3x3, Add, Relu"
  std::vector<int> x = {1};
  std::vector<int> y = {1};
  std::vector<double> seconds = {0};
  int64_t measured = 0;  ///< when: seconds since 1970; 0 if unknown

  /// Bilinear interpolation between the four surrounding points; clamped at the edges.
  double at(double width_x, double width_y) const;

  /// Ascending widths and one finite time of at least 0 for each pair of them?
  bool is_sound() const;

  bool operator==(const LatencyTable&) const = default;
};

/// Widths to measure first along an axis of `size`: 1, the quarters, all.
std::vector<int> first_widths(int size);

/// The most informative width to measure next, given times at ascending `widths`: the middle of the
/// interval over which they change most. 0 if no interval is wider than 1 or none changes by more
/// than 3% of the longest time.
int next_width(std::span<const int> widths, std::span<const double> seconds);

}  // namespace parsimony
