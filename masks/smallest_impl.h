// The two selection algorithms: by sampling, which reads every element once, and by radix
// histograms of all elements. Private to masks/.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "parsimony/masks/smallest.h"

namespace parsimony {

/// As find_threshold. Empty if the sample misled, which is rare unless the weights are adversarial.
std::optional<MagnitudeThreshold> threshold_by_sample(std::span<const Weight* const> weights,
                                                      int64_t count);

/// As find_threshold.
MagnitudeThreshold threshold_by_histogram(std::span<const Weight* const> weights, int64_t count);

}  // namespace parsimony
