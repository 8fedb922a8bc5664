// The k smallest magnitudes of weights too large to sort: selection by sampling in one pass; if the
// sample misleads, by histogram in three passes (four for doubles).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "parsimony/graph/graph.h"

namespace parsimony {

/// The threshold below which the smallest elements lie.
struct MagnitudeThreshold {
  double magnitude = 0;  ///< every element below it is selected
  int64_t equal = 0;     ///< and so are this many of the elements equal to it, in order
};

/// The threshold below which `count` elements of the weights lie, ranked together. `count` is
/// between 1 and their total number of elements.
/// @throws ModelError for a NaN, UnsupportedError for a type that has no magnitude
MagnitudeThreshold find_threshold(std::span<const Weight* const> weights, int64_t count);

/// How many of the `count` smallest elements lie in each weight; ties go to the earlier weight.
/// @throws as find_threshold
std::vector<int64_t> count_smallest(std::span<const Weight* const> weights, int64_t count);

// The two algorithms: by sampling, which reads every element once, and by radix histograms of all
// elements.

/// As find_threshold. Empty if the sample misled, which is rare unless the weights are adversarial.
std::optional<MagnitudeThreshold> threshold_by_sample(std::span<const Weight* const> weights,
                                                      int64_t count);

/// As find_threshold.
MagnitudeThreshold threshold_by_histogram(std::span<const Weight* const> weights, int64_t count);

}  // namespace parsimony
