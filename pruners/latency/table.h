// Times of a subgraph, measured at some widths.
#pragma once

#include <cstdint>
#include <map>
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

/// By Subgraph::key.
using LatencyTables = std::map<std::string, LatencyTable>;

}  // namespace parsimony
