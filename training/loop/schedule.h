// How the learning rate goes on.
#pragma once

#include <cstdint>

#include "parsimony/configs/recipe.h"

namespace parsimony::training {

/// The rate of optimizer step `step`, 0 <= step < steps, of a training of `settings.epochs` epochs.
/// Cosine and one cycle change it at every step, `step` at the epochs' ends.
/// @source cosine: Loshchilov and Hutter, SGDR, 2016, without restarts; one cycle: Smith and Topin,
/// Super-convergence, 2017: from lr/25 up to lr in 30 % of the steps, then down to lr/250,000
double learning_rate(const TrainSettings& settings, int64_t step, int64_t steps);

}  // namespace parsimony::training
