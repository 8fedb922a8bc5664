// Weights stored as integers, as read by DequantizeLinear, QLinearConv and similar operators.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "parsimony/graph/graph.h"

namespace parsimony {

/// w[i] represents (w[i] - zero_point[k]) · scale[k] with k = (i / inner) % scale.size().
struct Quantised {
  int64_t inner = 1;  ///< consecutive elements that share a scale
  std::vector<double> scale;
  std::vector<double> zero_point;  ///< as many as scales
};

/// How `reader` interprets the weight; empty if it reads plain numbers, or if its scales are not
/// constants per tensor or per channel.
std::optional<Quantised> quantised(const Graph& graph, const Node& reader, const Weight& weight);

}  // namespace parsimony
