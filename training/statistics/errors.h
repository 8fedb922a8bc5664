// What can be wrong with calibration, in words.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "parsimony/base/errors.h"
#include "parsimony/base/types.h"

namespace parsimony::training::errors {

/// Labelled samples feed one input.
UnsupportedError calibration_inputs(size_t inputs);
/// The samples are of other dims than the network's input declares.
ModelError calibration_dims(const Shape& found, const Shape& wanted);
/// There is not a single whole batch.
ConfigError no_calibration_data(int64_t batch);
/// Gradients need answers [n, classes].
ModelError no_classes(const Shape& found, int64_t samples);
/// The criterion looks at one sample at a time, and the network takes `batch`.
UnsupportedError needs_single_samples(int64_t batch);
ModelError label_beyond(int64_t label, int64_t classes);

}  // namespace parsimony::training::errors
