// The two ways to select: by a sample, which reads every element once, and by the digits of all
// elements. Private to masks/.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "parsimony/masks/smallest.h"

namespace parsimony {

/// As find_cut. Empty where the sample misled: rarely, unless the weights were made to.
std::optional<Cut> cut_by_sample(std::span<const Weight* const> weights, int64_t count);

/// As find_cut.
Cut cut_by_digits(std::span<const Weight* const> weights, int64_t count);

}  // namespace parsimony
